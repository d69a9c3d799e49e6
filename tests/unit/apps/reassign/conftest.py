"""Makes the modules beside this file importable for the tests in the folders below."""
