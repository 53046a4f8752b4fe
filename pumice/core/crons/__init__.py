"""
CronJobs: when a Job is due, which Job, and what becomes of the earlier ones.

Everything here is pure: what is seen goes in, what is to be done comes out. Time zones come in as
functions, and so does the time.
"""
