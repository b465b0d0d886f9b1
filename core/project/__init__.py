"""What is public before anything is read: the schema, the plan, the project file."""
