"""Reassignment of replicas: makes a plan and a forecast for a goal, runs the plan, removes throttles, and can undo it.

    view = read_view(client)                                  what there is           reading
    plan = make_plan(view, Goal(drain=frozenset({2})))        what should be          planner   (pure)
    problems_of(plan, view)                                   checked as a whole      checks    (pure)
    foresee(plan, view, throttle)                             bytes, time, risks      forecast  (pure)
    Run(plan, …).execute(on_progress)                         throttled, journalled   run

Used by the command line and by the web console.
"""
