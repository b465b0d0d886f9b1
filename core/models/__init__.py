"""What a method fits: models that draw rows."""
