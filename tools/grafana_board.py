"""Write deploy/grafana-board.json: the board for Grafana, from a table of panels.

python tools/grafana_board.py > deploy/grafana-board.json
"""

import json
import sys

_SOURCE = {"type": "prometheus", "uid": "${source}"}
_RATE = "sum by ({by}) (rate({metric}[$__rate_interval]))"
_REQUEST_TIME = 'max by (request) (kafka_network_requestmetrics_{part}{{quantile="0.99", request=~"Produce|Fetch.*"}})'

HEALTH = {
    "Offline partitions": "sum(kafka_controller_kafkacontroller_offlinepartitionscount)",
    "Under min ISR": "sum(kafka_server_replicamanager_underminisrpartitioncount)",
    "Under-replicated": "sum(kafka_server_replicamanager_underreplicatedpartitions)",
    "Controllers": "sum(kafka_controller_kafkacontroller_activecontrollercount)",
    "Brokers": 'sum(up{job="odradek"})',
    "Topics": "max(kafka_controller_kafkacontroller_globaltopiccount)",
}
CHARTS: list[tuple[str, str, str, str]] = [
    ("Records in, by topic", _RATE.format(by="topic", metric='kafka_server_brokertopicmetrics_messagesin_total{topic!=""}'), "{{topic}}", "cps"),
    ("Bytes in, by topic", _RATE.format(by="topic", metric='kafka_server_brokertopicmetrics_bytesin_total{topic!=""}'), "{{topic}}", "Bps"),
    ("Bytes out, by topic", _RATE.format(by="topic", metric='kafka_server_brokertopicmetrics_bytesout_total{topic!=""}'), "{{topic}}", "Bps"),
    ("Requests", _RATE.format(by="request", metric="kafka_network_requestmetrics_requests_total"), "{{request}}", "reqps"),
    ("Total time, p99", _REQUEST_TIME.format(part="totaltimems"), "{{request}}", "ms"),
    ("Time in the queue, p99", _REQUEST_TIME.format(part="requestqueuetimems"), "{{request}}", "ms"),
    ("Request queue", "kafka_network_requestchannel_requestqueuesize", "{{instance}}", "short"),
    ("Connections", "kafka_server_socketservermetrics_connection_count", "{{instance}}", "short"),
    ("Leaders", "kafka_server_replicamanager_leadercount", "{{instance}}", "short"),
    ("Replicas", "kafka_server_replicamanager_partitioncount", "{{instance}}", "short"),
    ("Logs on disk, by topic", "sum by (topic) (kafka_log_log_size)", "{{topic}}", "bytes"),
    ("Not compacted yet", "kafka_log_logcleanermanager_max_dirty_percent", "{{instance}}", "percent"),
    ("Throttled time", _RATE.format(by="instance", metric="odradek_quotas_throttled_ms_total"), "{{instance}}", "ms"),
    ("Failed logins", _RATE.format(by="instance", metric="kafka_server_socketservermetrics_failed_authentication_total"), "{{instance}}", "cps"),
]  # fmt: skip


def board() -> dict[str, object]:
    panels: list[dict[str, object]] = []
    for place, (title, expression) in enumerate(HEALTH.items()):
        is_fault = title in ("Offline partitions", "Under min ISR", "Under-replicated")
        steps = [{"color": "green", "value": None}, *([{"color": "red", "value": 1}] if is_fault else [])]
        panels.append(
            {
                "id": len(panels) + 1,
                "type": "stat",
                "title": title,
                "datasource": _SOURCE,
                "gridPos": {"x": 4 * place, "y": 0, "w": 4, "h": 4},
                "fieldConfig": {"defaults": {"thresholds": {"mode": "absolute", "steps": steps}}, "overrides": []},
                "targets": [{"refId": "A", "expr": expression, "datasource": _SOURCE}],
            }
        )
    for place, (title, expression, legend, unit) in enumerate(CHARTS):
        panels.append(
            {
                "id": len(panels) + 1,
                "type": "timeseries",
                "title": title,
                "datasource": _SOURCE,
                "gridPos": {"x": 12 * (place % 2), "y": 4 + 8 * (place // 2), "w": 12, "h": 8},
                "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
                "targets": [{"refId": "A", "expr": expression, "legendFormat": legend, "datasource": _SOURCE}],
            }
        )
    return {
        "title": "Odradek",
        "uid": "odradek",
        "tags": ["odradek", "kafka"],
        "schemaVersion": 39,
        "version": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [{"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}]
        },
        "panels": panels,
    }


if __name__ == "__main__":
    json.dump(board(), sys.stdout, indent=1)
    sys.stdout.write("\n")
