"""Membership game: can an attacker who knows the pool, the method and the schema infer from a release whether a row was
in the table?
"""
