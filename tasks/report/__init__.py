"""What people and programs read: console tables, the JSON document, doit's reporter. Judges nothing."""
