"""
Defaults and validation of our kinds: object to object, object to list of errors.

The same functions serve whoever stands in front of the API server and whoever reads what went
in without passing there. A check returns everything that is wrong at once; the texts are
Volcano's, so that whoever looks for them in a refusal finds them.
"""
