"""What scores say beside their baselines and their noise."""
