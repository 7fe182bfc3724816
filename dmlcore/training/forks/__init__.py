"""Runs that begin where another one stood: what may change, what goes on, what begins anew."""
