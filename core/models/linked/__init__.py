"""Model of linked tables: a graphical model of people, and a model of each visit given the earlier visits."""
