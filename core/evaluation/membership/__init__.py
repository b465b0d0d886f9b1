"""The membership game: can someone who knows pool, method and schema tell from a release whether a row was in it?"""
