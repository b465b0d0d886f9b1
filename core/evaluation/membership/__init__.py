"""The membership game: can anyone who knows pool, method and schema infer from a release whether a row was in it?"""
