"""Readers and writers of data dictionaries, in which other tools declare the columns of a table.

A dictionary declares kinds, categories, labels, missing codes and ranges. Its frequencies and summary statistics are
never read, because they describe private rows. A dictionary is treated as public only if a person states that it was
not produced from the rows it describes (`espalier.core.project.declared_by`).
"""
