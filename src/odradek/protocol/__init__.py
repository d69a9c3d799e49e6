"""The wire: message declarations, one line per field; the codec that compiles them; record batches, compression.
Pure.
"""
