"""What a release learns from the people who were held out of it, at a price."""
