"""The results of methods: models that draw rows."""
