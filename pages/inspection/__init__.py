"""Pages that show what a trained network has learned and which classes it confuses, all for the selected run."""
