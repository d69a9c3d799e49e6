"""`odradek demo`: runs a cluster, a shop and a pipeline, kills a broker under load, and counts every record.

command   the command line          stage     brokers, topics and the project, in a temporary directory
traffic   the shop, selling         story     what happens when, and what was seen
view      the terminal              proof     what was sent against what came out
report    the page with the plots   quick     one broker and 100,000 records, without Spark
"""
