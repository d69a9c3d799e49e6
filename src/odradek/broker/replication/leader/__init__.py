"""The leader's side: serves fetches, parks produces until the ISR has them, keeps fetch sessions, proposes ISR
changes."""
