"""Description of each metric of a broker and of a pipeline: for the HELP lines of /metrics and for the reference page.

One line per metric: name, labels or `-`, meaning.
"""

from collections.abc import Mapping
from functools import cache

TEXT = """
kafka_cluster_partition_highwatermark topic,partition Offset up to which every in-sync replica has the log.
kafka_cluster_partition_laststableoffsetlag topic,partition Records between the last stable offset and the high watermark, held back by open transactions.
kafka_controller_kafkacontroller_activecontrollercount - 1 on the controller, 0 on other brokers. The sum over all brokers is 1.
kafka_controller_kafkacontroller_globaltopiccount - Topics of the cluster.
kafka_controller_kafkacontroller_offlinepartitionscount - Partitions without a leader, as the controller sees them; 0 on other brokers.
kafka_coordinator_transaction_transactionmarkerchannelmanager_logappendretryqueuesize - Transactions whose end has to be written again to the transaction log.
kafka_coordinator_transaction_transactionmarkerchannelmanager_unknowndestinationqueuesize - Transaction markers for partitions whose leader is not known.
kafka_log_log_logendoffset topic,partition Offset of the next record.
kafka_log_log_logstartoffset topic,partition First offset of the log.
kafka_log_log_size topic,partition Bytes of the log on disk.
kafka_log_logcleaner_cleaner_recopy_percent - Bytes that the last compaction kept, in percent of those that it read.
kafka_log_logcleaner_deadthreadcount - Cleaner threads that have failed. Above 0, compaction is slower or stopped.
kafka_log_logcleaner_max_buffer_utilization_percent - Use of the offset map in the last compaction. At 100, a log needs several rounds.
kafka_log_logcleaner_max_clean_time_secs - Duration of the last compaction.
kafka_log_logcleanermanager_max_dirty_percent - Largest share of a compacted log that is not compacted yet.
kafka_log_logcleanermanager_time_since_last_run_ms - Time since the cleaner looked for work.
kafka_log_logcleanermanager_uncleanable_partitions_count - Logs that could not be compacted; the broker's log says why.
kafka_network_requestchannel_requestqueuesize - Requests that wait for a handler thread.
kafka_network_requestmetrics_localtimems request,quantile Time in the handler.
kafka_network_requestmetrics_localtimems_count request Requests answered.
kafka_network_requestmetrics_remotetimems request,quantile Time waited for other brokers or for records (purgatory).
kafka_network_requestmetrics_remotetimems_count request Requests answered.
kafka_network_requestmetrics_requestqueuetimems request,quantile Time waited for a thread.
kafka_network_requestmetrics_requestqueuetimems_count request Requests answered.
kafka_network_requestmetrics_requests_total request,version Requests by API and version.
kafka_network_requestmetrics_responsesendtimems request,quantile Time until the response was sent.
kafka_network_requestmetrics_responsesendtimems_count request Requests answered.
kafka_network_requestmetrics_totaltimems request,quantile Time from the last byte of the request to the last byte of the response.
kafka_network_requestmetrics_totaltimems_count request Requests answered.
kafka_server_addpartitionstotxnmanager_verificationfailurerate_count - Partitions whose transaction could not be verified, since the start.
kafka_server_addpartitionstotxnmanager_verificationtimems quantile Time until the coordinator of a transaction answered a leader before the first append.
kafka_server_addpartitionstotxnmanager_verificationtimems_count - Verifications of transactions by leaders.
kafka_server_brokertopicmetrics_bytesin_total topic Bytes written by producers; without a label, of all topics.
kafka_server_brokertopicmetrics_bytesout_total topic Bytes read by consumers; without a label, of all topics.
kafka_server_brokertopicmetrics_messagesin_total topic Records written by producers; without a label, of all topics.
kafka_server_controllermutation_tokens user,client_id Changes of partitions that a client may still make at once.
kafka_server_fetch_byte_rate user,client_id Bytes a second that a client reads, where a quota applies to it.
kafka_server_fetchsessioncache_numincrementalfetchsessions - Incremental fetch sessions.
kafka_server_produce_byte_rate user,client_id Bytes a second that a client writes, where a quota applies to it.
kafka_server_replicamanager_leadercount - Partitions that this broker leads.
kafka_server_replicamanager_offlinereplicacount - Replicas in log directories that failed.
kafka_server_replicamanager_partitioncount - Replicas of this broker.
kafka_server_replicamanager_partitionswithlatetransactionscount - Partitions with a transaction that should have ended long ago; readers of committed records wait for it.
kafka_server_replicamanager_produceridcount - Producer ids that partitions of this broker remember.
kafka_server_replicamanager_underminisrpartitioncount - Partitions led here with fewer in-sync replicas than min.insync.replicas: acks=all is refused.
kafka_server_replicamanager_underreplicatedpartitions - Partitions led here with replicas that are not in sync.
kafka_server_request_request_time user,client_id Percent of a thread's time that a client uses, where a quota applies to it.
kafka_server_socketservermetrics_connection_count - Open connections.
kafka_server_socketservermetrics_expired_connections_killed_count - Connections closed because their session was not authenticated again in time.
kafka_server_socketservermetrics_failed_authentication_total - Failed logins.
kafka_server_socketservermetrics_successful_authentication_total - Logins.
kafka_server_socketservermetrics_successful_reauthentication_total - Repeated logins of open connections.
kafka_server_transaction_coordinator_metrics_partition_load_time_avg - Average time to load a partition of the transaction log, in ms.
kafka_server_transaction_coordinator_metrics_partition_load_time_max - Longest time to load a partition of the transaction log, in ms.
odradek_certificate_expiry_timestamp_seconds listener End of the listener's certificate, in seconds since 1970.
odradek_failed_threads_total - Threads and tasks of executors that an unexpected exception has ended. Above 0, the broker stops or runs without a part.
odradek_inner_loop_info implementation 1; the label says whether compiled code is used.
odradek_logged_exceptions_total - Exceptions that the broker's log has with a traceback. The broker continues after most of them.
odradek_pipeline_batch pipeline,query Number of the last batch.
odradek_pipeline_batch_milliseconds pipeline,query Duration of the last batch.
odradek_pipeline_duplicates_total pipeline,query Rows that were dropped as duplicates.
odradek_pipeline_input_rows_per_second pipeline,query Rows read a second.
odradek_pipeline_input_rows_total pipeline,query Rows read.
odradek_pipeline_lag_records pipeline,query Records of the sources that were not read yet.
odradek_pipeline_late_rows_total pipeline,query Rows that came after the watermark and were left out.
odradek_pipeline_processed_rows_per_second pipeline,query Rows processed a second.
odradek_pipeline_restarts_total pipeline,query Restarts of the query after a failure.
odradek_pipeline_state_bytes pipeline,query Memory of the query's state.
odradek_pipeline_state_rows pipeline,query Rows of the query's state.
odradek_quotas_throttled_ms_total - Time for which clients were throttled.
odradek_quotas_throttles_total - Responses that throttled a client.
"""


@cache
def descriptions() -> Mapping[str, tuple[str, str]]:
    """Return labels and meaning by name."""
    lines = (line.split(" ", 2) for line in TEXT.strip().splitlines())
    return {name: ("" if labels == "-" else labels, meaning) for name, labels, meaning in lines}


def meaning(name: str) -> str:
    return descriptions().get(name, ("", ""))[1]
