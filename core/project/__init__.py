"""Public input that is known before anything is read: the schema, the plan, and the project file."""
