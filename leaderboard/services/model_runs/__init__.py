"""Model runs: a state machine in the database, moved on by one call of the model at a time.

    WAITING --claim--> CALLING --turn_store--> EVALUATING --turn_close--> WAITING ... or ended

Every arrow is one transaction. A crash between two of them repeats at most the call that was under
way; what is stored is never asked for again. Order of locks: run, trajectory, entrant, submission.
"""
