"""Small invented tables, each with its project file, and the script that makes them."""
