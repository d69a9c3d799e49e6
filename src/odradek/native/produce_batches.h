/* A producer's batches on their way into the log: listed from the request, checked, and placed behind the log's end with
   the producer's next entry. The twins are `_batches` of odradek/broker/api/handlers/produce.py, `check_records` and
   `assign_offsets` of odradek/broker/log/core/validation.py, and `place` of
   odradek/broker/log/core/append_placement.py. */

static PyObject *with_reference(PyObject *object) {
    Py_XINCREF(object);
    return object;
}

/* Adds (partition, records) for each partition of the topic; 0 for an internal topic, or for records that are not there. */
static int list_topic(PyObject *found, PyObject *partition_type, PyObject *topic, PyObject *internal) {
    PyObject *name = PyObject_GetAttr(topic, name_key), *partitions = PyObject_GetAttr(topic, partition_data_key);
    int is_usual = name != NULL && partitions != NULL && PyList_Check(partitions) && PySet_Contains(internal, name) == 0;
    for (Py_ssize_t place = 0; is_usual && place < PyList_Size(partitions); place++) {
        PyObject *data = PySequence_GetItem(partitions, place), *batch = NULL;
        PyObject *records = data == NULL ? NULL : PyObject_GetAttr(data, records_key);
        is_usual = records != NULL && PyMemoryView_Check(records);
        if (is_usual) {
            PyObject *of_partition[] = {with_reference(name), PyObject_GetAttr(data, index_key)};
            PyObject *of_batch[] = {tuple_of(partition_type, of_partition, 2), with_reference(records)};
            batch = tuple_of((PyObject *)&PyTuple_Type, of_batch, 2);
            is_usual = batch != NULL && PyList_Append(found, batch) == 0;
        }
        Py_XDECREF(batch);
        Py_XDECREF(records);
        Py_XDECREF(data);
    }
    Py_XDECREF(name);
    Py_XDECREF(partitions);
    return is_usual;
}

/* The types CheckedRecords, CheckedBatch, BatchHeader; the limits max_message_bytes, timestamp_after_max_ms, stamps. */
enum { CHECKED_RECORDS, CHECKED_BATCH, BATCH_HEADER, CHECKED_TYPES };
enum { MAX_MESSAGE_BYTES, TIMESTAMP_AFTER_MAX, STAMPS, LIMITS };

typedef struct {
    int64_t max_bytes, newest, now, stamps;
} Limits;

static int read_limits(PyObject *given, PyObject *now, Limits *limits) {
    int64_t after;
    if (!int_item(given, MAX_MESSAGE_BYTES, &limits->max_bytes) || !int_item(given, TIMESTAMP_AFTER_MAX, &after)) return 0;
    if (!int_item(given, STAMPS, &limits->stamps) || !as_int64(now, &limits->now)) return 0;
    int is_unlimited = limits->stamps || (after > 0 && limits->now > INT64_MAX - after);
    limits->newest = is_unlimited ? INT64_MAX : (int64_t)((uint64_t)limits->now + (uint64_t)after);
    return 1;
}

static PyObject *checked_records(PyObject *types, PyObject *rules, PyObject *data, const Header *header, const Limits *limits) {
    PyObject *of_batch[] = {
        with_reference(data),
        header_object(PyTuple_GetItem(types, BATCH_HEADER), header),
        PyLong_FromLongLong(limits->stamps ? limits->now : header->max_timestamp),
    };
    PyObject *batch = tuple_of(PyTuple_GetItem(types, CHECKED_BATCH), of_batch, 3), *batches = PyList_New(1);
    if (batch == NULL || batches == NULL) {
        Py_XDECREF(batch);
        Py_XDECREF(batches);
        return NULL;
    }
    PyList_SetItem(batches, 0, batch);
    PyObject *values[] = {batches, with_reference(rules), PyLong_FromLongLong(limits->now)};
    return tuple_of(PyTuple_GetItem(types, CHECKED_RECORDS), values, 3);
}

/* The types Placed, BatchInfo, ProducerEntry, AppendedBatch, Staged, and what is staged for a batch without a producer. */
enum { PLACED, BATCH_INFO, PRODUCER_ENTRY, APPENDED_BATCH, STAGED, NOTHING_STAGED, PLACED_TYPES };
enum { BATCH_DATA, BATCH_CHECKED_HEADER, BATCH_NEWEST, BATCH_FIELDS };

/* What the batch changes for its producer; NULL for a producer without an entry, and for all but its next batch. */
static PyObject *staged_next(PyObject *types, PyObject *entries, PyObject *info, int64_t producer_id, Py_ssize_t kept) {
    if (producer_id < 0) return with_reference(PyTuple_GetItem(types, NOTHING_STAGED));
    PyObject *number = PyLong_FromLongLong(producer_id);
    PyObject *entry = number == NULL ? NULL : PyDict_GetItemWithError(entries, number), *after = NULL, *changed = NULL;
    if (entry != NULL && PyTuple_Check(entry)) {
        Py_INCREF(entry);
        PyObject *entry_type = PyTuple_GetItem(types, PRODUCER_ENTRY), *batch_type = PyTuple_GetItem(types, APPENDED_BATCH);
        after = next_entry(entry_type, batch_type, entry, info, kept);
        Py_DECREF(entry);
    }
    if (after != NULL) {
        changed = PyDict_New();
        if (changed != NULL && PyDict_SetItem(changed, number, after) < 0) Py_CLEAR(changed);
    }
    Py_XDECREF(after);
    Py_XDECREF(number);
    if (changed == NULL) return NULL;
    PyObject *values[] = {changed, PyTuple_New(0)};
    return tuple_of(PyTuple_GetItem(types, STAGED), values, 2);
}

/* A Placed, and the batch patched; NULL, and nothing changed, for anything unusual. */
static PyObject *place_next(
    PyObject *types, PyObject *batch, PyObject *entries, int64_t base_offset, int64_t leader_epoch, Py_ssize_t kept) {
    Py_buffer data;
    Header header;
    int64_t newest;
    PyObject *placed = NULL, *bytes = PyTuple_GetItem(batch, BATCH_DATA);
    if (!int_item(batch, BATCH_NEWEST, &newest) || PyObject_GetBuffer(bytes, &data, PyBUF_WRITABLE) < 0) return NULL;
    int is_usual = leader_epoch == (int32_t)leader_epoch && header_at(&data, 0, &header) && newest == header.max_timestamp;
    if (is_usual && !(header.attributes & LOG_APPEND_TIME_BIT)) {
        PyObject *info = info_object(PyTuple_GetItem(types, BATCH_INFO), &header, base_offset, 0);
        PyObject *staged = info == NULL ? NULL : staged_next(types, entries, info, header.producer_id, kept);
        PyObject *infos = staged == NULL ? NULL : PyList_New(1);
        if (infos != NULL) {
            PyList_SetItem(infos, 0, with_reference(info));
            PyObject *values[] = {
                with_reference(bytes),
                infos,
                PyLong_FromLongLong(newest),
                PyLong_FromLong(NO_TIMESTAMP),
                with_reference(staged),
            };
            placed = tuple_of(PyTuple_GetItem(types, PLACED), values, 5);
        }
        if (placed != NULL) patch_batch(&data, base_offset, leader_epoch);
        Py_XDECREF(staged);
        Py_XDECREF(info);
    }
    PyBuffer_Release(&data);
    return placed;
}
