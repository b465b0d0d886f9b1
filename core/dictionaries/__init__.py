"""Data dictionaries: what other tools declare about the columns of a table, read and written.

A dictionary declares kinds, categories, labels, missing codes and ranges. Frequencies and summary statistics in it are
never read, because they describe private rows. A dictionary counts as public only with the statement of a person that
it was not produced from the rows it describes (`espalier.core.project.declared_by`).
"""
