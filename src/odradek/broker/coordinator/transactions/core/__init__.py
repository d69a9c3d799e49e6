"""Decisions of the transaction coordinator: states, epochs, records of `__transaction_state`. Pure."""
