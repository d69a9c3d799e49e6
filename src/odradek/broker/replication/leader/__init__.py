"""The leader's side: fetches served, produces that wait for the ISR, fetch sessions, ISR changes proposed."""
