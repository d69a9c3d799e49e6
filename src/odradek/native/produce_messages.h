/* The two ends of a request: its header, and for a Produce what its batches say of themselves, the state of a producer
   after its next batch, and the answer to batches that were all written. The twins are `parse_request_header` of
   odradek/protocol/framing.py, `survey_batches` of odradek/protocol/batch_survey.py, `next_entry` of
   odradek/broker/log/core/producer_entry.py, and the encoder of ProduceResponse. */

enum {
    HEADER_VERSION_BITS = 5, /* a table of header versions has room for 32 versions of an API */
    CLIENT_ID_AT = 10,
    RECORD_COUNT_AT = 57,
    LAST_PRODUCE_VERSION = 12,
    FIRST_FLEXIBLE_PRODUCE = 9,
    FIRST_OFFSET = 0, /* fields of AppendResult */
    LOG_APPEND_TIME = 3,
    LOG_START_OFFSET = 4
};

static PyObject *name_key, *partition_data_key, *index_key, *records_key; /* interned names of attributes */

static int intern_names(void) {
    name_key = PyUnicode_InternFromString("name");
    partition_data_key = PyUnicode_InternFromString("partition_data");
    index_key = PyUnicode_InternFromString("index");
    records_key = PyUnicode_InternFromString("records");
    return name_key != NULL && partition_data_key != NULL && index_key != NULL && records_key != NULL;
}

/* The header of a request whose API and version the table knows; NULL, and no exception, for anything unusual. */
static PyObject *request_header(PyObject *type, const Py_buffer *versions, const Py_buffer *frame) {
    const uint8_t *at = frame->buf;
    if (frame->len < CLIENT_ID_AT) return NULL;
    int64_t key = (int16_t)read_be(at, 2), version = (int16_t)read_be(at + 2, 2);
    if (key < 0 || version < 0 || version >> HEADER_VERSION_BITS) return NULL;
    int64_t slot = key << HEADER_VERSION_BITS | version;
    if (slot >= versions->len) return NULL;
    int header_version = ((const uint8_t *)versions->buf)[slot];
    if (header_version != 1 && header_version != 2) return NULL;
    int64_t length = (int16_t)read_be(at + 8, 2), pos = CLIENT_ID_AT;
    if (length > 0) pos += length;
    if (pos > frame->len || (header_version == 2 && (pos == frame->len || at[pos] != 0))) return NULL;
    PyObject *client_id = Py_None;
    if (length >= 0) client_id = PyUnicode_DecodeUTF8((const char *)at + CLIENT_ID_AT, length, NULL);
    else Py_INCREF(Py_None);
    if (client_id == NULL) return NULL;
    PyObject *values[] = {
        PyLong_FromLongLong(key),
        PyLong_FromLongLong(version),
        PyLong_FromLong((int32_t)read_be(at + 4, 4)),
        client_id,
        PyLong_FromLongLong(header_version == 2 ? pos + 1 : pos),
    };
    return tuple_of(type, values, 5);
}

typedef struct {
    int64_t records, compressed, transactional;
} Survey;

/* Adds a batch; 0 when it is not one whole header of magic 2. */
static int survey_batch(PyObject *records, Survey *survey) {
    Py_buffer data;
    if (!PyMemoryView_Check(records) || PyObject_GetBuffer(records, &data, PyBUF_SIMPLE) < 0) return 0;
    const uint8_t *at = data.buf;
    int is_usual = data.len >= HEADER_SIZE && at[MAGIC_AT] == MAGIC;
    if (is_usual) {
        int attributes = at[ATTRIBUTES_AT + 1];
        survey->records += (int32_t)read_be(at + RECORD_COUNT_AT, 4);
        survey->compressed += (attributes & CODEC_MASK) != 0;
        survey->transactional += (attributes & TRANSACTIONAL_BIT) != 0;
    }
    PyBuffer_Release(&data);
    return is_usual;
}

static int survey_topic(PyObject *topic, Survey *survey) {
    PyObject *partitions = PyObject_GetAttr(topic, partition_data_key);
    Py_ssize_t count = partitions == NULL || !PyList_Check(partitions) ? -1 : PyList_Size(partitions);
    int is_usual = count >= 0;
    for (Py_ssize_t place = 0; is_usual && place < count; place++) {
        PyObject *data = PySequence_GetItem(partitions, place);
        PyObject *records = data == NULL ? NULL : PyObject_GetAttr(data, records_key);
        is_usual = records != NULL && survey_batch(records, survey);
        Py_XDECREF(records);
        Py_XDECREF(data);
    }
    Py_XDECREF(partitions);
    return is_usual;
}

/* Fields of BatchInfo and ProducerEntry, in their order; an AppendedBatch begins with its last sequence. */
enum {
    INFO_BASE_OFFSET,
    INFO_LAST_OFFSET,
    INFO_TIMESTAMP,
    INFO_EPOCH = 6,
    INFO_SEQUENCE,
    INFO_LAST_SEQUENCE,
    INFO_TRANSACTIONAL,
    INFO_CONTROL,
    INFO_FIELDS
};
enum { ENTRY_PRODUCER, ENTRY_EPOCH, ENTRY_COORDINATOR_EPOCH, ENTRY_TIMESTAMP, ENTRY_TXN_OFFSET, ENTRY_BATCHES, ENTRY_FIELDS };

static int int_item(PyObject *tuple, Py_ssize_t place, int64_t *value) {
    PyObject *item = PyTuple_GetItem(tuple, place);
    return item != NULL && as_int64(item, value);
}

static PyObject *kept_item(PyObject *tuple, Py_ssize_t place) {
    PyObject *item = PyTuple_GetItem(tuple, place);
    Py_XINCREF(item);
    return item;
}

/* The last `kept - 1` batches of the producer, and this one behind them. Takes the batch. */
static PyObject *batches_with(PyObject *batches, PyObject *appended, Py_ssize_t kept) {
    if (appended == NULL) return NULL;
    Py_ssize_t count = PyTuple_Size(batches), first = count < kept ? 0 : count - kept + 1;
    PyObject *all = PyTuple_New(count - first + 1);
    if (all == NULL) {
        Py_DECREF(appended);
        return NULL;
    }
    for (Py_ssize_t place = first; place < count; place++) PyTuple_SetItem(all, place - first, kept_item(batches, place));
    PyTuple_SetItem(all, count - first, appended);
    return all;
}

/* The entry after the producer's next batch; NULL, and perhaps an exception, for anything else. */
static PyObject *next_entry(PyObject *entry_type, PyObject *batch_type, PyObject *entry, PyObject *info, Py_ssize_t kept) {
    int64_t epoch, txn_offset, last_sequence, of_epoch, sequence, base_offset, last_offset;
    if (PyTuple_Size(entry) != ENTRY_FIELDS || PyTuple_Size(info) != INFO_FIELDS || kept < 1) return NULL;
    PyObject *batches = PyTuple_GetItem(entry, ENTRY_BATCHES);
    if (!PyTuple_Check(batches) || PyTuple_Size(batches) == 0) return NULL;
    PyObject *last = PyTuple_GetItem(batches, PyTuple_Size(batches) - 1);
    if (!PyTuple_Check(last) || !int_item(last, 0, &last_sequence)) return NULL;
    if (!int_item(entry, ENTRY_EPOCH, &epoch) || !int_item(entry, ENTRY_TXN_OFFSET, &txn_offset)) return NULL;
    if (!int_item(info, INFO_EPOCH, &of_epoch) || !int_item(info, INFO_SEQUENCE, &sequence)) return NULL;
    if (!int_item(info, INFO_BASE_OFFSET, &base_offset) || !int_item(info, INFO_LAST_OFFSET, &last_offset)) return NULL;
    if (of_epoch != epoch || last_sequence < -1 || last_sequence > MAX_SEQUENCE) return NULL;
    if (sequence != ((last_sequence + 1) & MAX_SEQUENCE)) return NULL;
    PyObject *is_in_transaction = txn_offset >= 0 ? Py_True : Py_False;
    if (PyTuple_GetItem(info, INFO_TRANSACTIONAL) != is_in_transaction) return NULL;
    if (PyTuple_GetItem(info, INFO_CONTROL) != Py_False) return NULL;
    PyObject *of_batch[] = {
        kept_item(info, INFO_LAST_SEQUENCE),
        kept_item(info, INFO_LAST_OFFSET),
        PyLong_FromLongLong((int64_t)((uint64_t)last_offset - (uint64_t)base_offset)),
        kept_item(info, INFO_TIMESTAMP),
    };
    PyObject *values[] = {
        kept_item(entry, ENTRY_PRODUCER),
        kept_item(entry, ENTRY_EPOCH),
        kept_item(entry, ENTRY_COORDINATOR_EPOCH),
        kept_item(info, INFO_TIMESTAMP),
        kept_item(entry, ENTRY_TXN_OFFSET),
        batches_with(batches, tuple_of(batch_type, of_batch, 4), kept),
    };
    return tuple_of(entry_type, values, ENTRY_FIELDS);
}

typedef struct {
    uint8_t *data;
    size_t size, capacity;
} Writer;

static int make_room(Writer *out, size_t size) {
    if (size <= out->capacity - out->size) return 1;
    size_t capacity = 2 * out->capacity + size;
    uint8_t *grown = PyMem_Realloc(out->data, capacity);
    if (grown == NULL) return 0;
    out->data = grown;
    out->capacity = capacity;
    return 1;
}

static int put(Writer *out, int64_t value, int size) {
    if (!make_room(out, (size_t)size)) return 0;
    write_be(out->data + out->size, (uint64_t)value, size);
    out->size += (size_t)size;
    return 1;
}

/* The count or length of something that isn't null: a varint of one more, or a number of `size` bytes. */
static int put_length(Writer *out, int64_t length, int is_flexible, int size) {
    if (!is_flexible) return put(out, length, size);
    uint64_t rest = (uint64_t)length + 1;
    for (; rest >= 0x80; rest >>= 7)
        if (!put(out, (int64_t)(rest & 0x7f | 0x80), 1)) return 0;
    return put(out, (int64_t)rest, 1);
}

/* The answer for one partition, to which `outcome` was written; 0 when that is not an AppendResult. */
static int put_partition(Writer *out, PyObject *data, PyObject *outcome, PyObject *result_type, int version) {
    int64_t index = 0, first_offset, append_time, log_start;
    int is_flexible = version >= FIRST_FLEXIBLE_PRODUCE;
    if ((PyObject *)Py_TYPE(outcome) != result_type || !PyTuple_Check(outcome)) return 0;
    if (!int_item(outcome, FIRST_OFFSET, &first_offset) || !int_item(outcome, LOG_APPEND_TIME, &append_time)) return 0;
    if (!int_item(outcome, LOG_START_OFFSET, &log_start)) return 0;
    PyObject *number = PyObject_GetAttr(data, index_key);
    int is_index = number != NULL && as_int64(number, &index) && index == (int32_t)index;
    Py_XDECREF(number);
    if (!is_index || !put(out, index, 4) || !put(out, 0, 2) || !put(out, first_offset, 8)) return 0;
    if (version >= 2 && !put(out, append_time, 8)) return 0;
    if (version >= 5 && !put(out, log_start, 8)) return 0;
    if (version == 8) return put(out, 0, 4) && put(out, -1, 2); /* no errors of records, no message */
    return !is_flexible || (put(out, 1, 1) && put(out, 0, 1) && put(out, 0, 1));
}

static int put_topic(Writer *out, PyObject *topic, PyObject *outcomes, Py_ssize_t *next, PyObject *result_type, int version) {
    int is_flexible = version >= FIRST_FLEXIBLE_PRODUCE, whole = 0;
    Py_ssize_t size = 0;
    PyObject *name = PyObject_GetAttr(topic, name_key), *partitions = PyObject_GetAttr(topic, partition_data_key);
    const char *text = name == NULL || !PyUnicode_Check(name) ? NULL : PyUnicode_AsUTF8AndSize(name, &size);
    if (text != NULL && size <= STRING_LENGTH_MAX && partitions != NULL && PyList_Check(partitions)) {
        Py_ssize_t count = PyList_Size(partitions);
        whole = put_length(out, size, is_flexible, 2) && make_room(out, (size_t)size);
        if (whole) {
            memcpy(out->data + out->size, text, (size_t)size);
            out->size += (size_t)size;
            whole = put_length(out, count, is_flexible, 4);
        }
        for (Py_ssize_t place = 0; whole && place < count; place++) {
            PyObject *data = PySequence_GetItem(partitions, place), *outcome = PySequence_GetItem(outcomes, (*next)++);
            whole = data != NULL && outcome != NULL && put_partition(out, data, outcome, result_type, version);
            Py_XDECREF(data);
            Py_XDECREF(outcome);
        }
        whole = whole && (!is_flexible || put(out, 0, 1));
    }
    Py_XDECREF(name);
    Py_XDECREF(partitions);
    return whole;
}

/* The whole frame, its length included; 0 for anything but batches that were all written. */
static int put_produce_response(
    Writer *out, PyObject *topics, PyObject *outcomes, PyObject *result_type, int64_t correlation_id, int version) {
    int is_flexible = version >= FIRST_FLEXIBLE_PRODUCE;
    Py_ssize_t next = 0, count = PyList_Size(topics);
    if (!put(out, 0, 4) || !put(out, correlation_id, 4) || (is_flexible && !put(out, 0, 1))) return 0;
    if (!put_length(out, count, is_flexible, 4)) return 0;
    for (Py_ssize_t place = 0; place < count; place++) {
        PyObject *topic = PySequence_GetItem(topics, place);
        int whole = topic != NULL && put_topic(out, topic, outcomes, &next, result_type, version);
        Py_XDECREF(topic);
        if (!whole) return 0;
    }
    if (next != PyList_Size(outcomes) || (version >= 1 && !put(out, 0, 4)) || (is_flexible && !put(out, 0, 1))) return 0;
    write_be(out->data, out->size - 4, 4);
    return 1;
}
