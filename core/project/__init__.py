"""The public input, known before anything is read: the schema, the plan, the project file."""
