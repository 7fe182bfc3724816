"""Losses seen: fields, charges, toys."""
