/* The answer to a Fetch whose partitions are all in order and whose records are few enough to be copied: the twin is
   `_response` of odradek/broker/api/handlers/fetch.py with the encoder of FetchResponse. */

enum {
    FIRST_FLEXIBLE_FETCH = 12,
    FIRST_FETCH_WITH_IDS = 13,
    LAST_FETCH_VERSION = 17,
    UUID_HALF_BITS = 64
};

/* Fields of FetchOutcome and FetchedPartition, in their order. */
enum { OUTCOME_TARGET, OUTCOME_ERROR, OUTCOME_FOUND, OUTCOME_DIVERGING, OUTCOME_READ_FROM, OUTCOME_FIELDS };
enum { FOUND_RECORDS, FOUND_HIGH_WATERMARK, FOUND_STABLE_OFFSET, FOUND_LOG_START, FOUND_ABORTED, FOUND_FIELDS };

static PyObject *partition_key, *topic_id_key, *int_key; /* interned names of attributes */

static int intern_fetch_names(void) {
    partition_key = PyUnicode_InternFromString("partition");
    topic_id_key = PyUnicode_InternFromString("topic_id");
    int_key = PyUnicode_InternFromString("int");
    return partition_key != NULL && topic_id_key != NULL && int_key != NULL;
}

static int put_bytes(Writer *out, const char *data, Py_ssize_t size) {
    if (!make_room(out, (size_t)size)) return 0;
    memcpy(out->data + out->size, data, (size_t)size);
    out->size += (size_t)size;
    return 1;
}

/* Topic and partition of an outcome: a name, the number of a topic id, an index. Owned by the caller. */
typedef struct {
    PyObject *name, *id;
    int64_t index;
} Place;

static void forget_place(Place *place) {
    Py_CLEAR(place->name);
    Py_CLEAR(place->id);
}

static int read_place(PyObject *outcome, Place *place) {
    PyObject *target = PyTuple_GetItem(outcome, OUTCOME_TARGET);
    PyObject *partition = PyObject_GetAttr(target, partition_key), *topic_id = PyObject_GetAttr(target, topic_id_key);
    place->name = place->id = NULL;
    int is_usual = partition != NULL && topic_id != NULL && PyTuple_Check(partition) && PyTuple_Size(partition) == 2;
    if (is_usual) {
        place->name = with_reference(PyTuple_GetItem(partition, 0));
        place->id = PyObject_GetAttr(topic_id, int_key);
        is_usual = place->id != NULL && PyLong_Check(place->id) && PyUnicode_Check(place->name);
        is_usual = is_usual && int_item(partition, 1, &place->index) && place->index == (int32_t)place->index;
    }
    Py_XDECREF(partition);
    Py_XDECREF(topic_id);
    if (!is_usual) forget_place(place);
    return is_usual;
}

static int is_same_topic(const Place *one, const Place *other) {
    return PyObject_RichCompareBool(one->name, other->name, Py_EQ) == 1 && PyObject_RichCompareBool(one->id, other->id, Py_EQ) == 1;
}

static int put_topic_name(Writer *out, PyObject *name) {
    Py_ssize_t size;
    const char *text = PyUnicode_AsUTF8AndSize(name, &size);
    return text != NULL && size <= STRING_LENGTH_MAX && put_length(out, size, 1, 2) && put_bytes(out, text, size);
}

static int put_topic_id(Writer *out, PyObject *id) {
    PyObject *bits = PyLong_FromLong(UUID_HALF_BITS), *high = bits == NULL ? NULL : PyNumber_Rshift(id, bits);
    int whole = high != NULL;
    if (whole) {
        uint64_t halves[] = {PyLong_AsUnsignedLongLongMask(high), PyLong_AsUnsignedLongLongMask(id)};
        whole = PyErr_Occurred() == NULL && put(out, (int64_t)halves[0], 8) && put(out, (int64_t)halves[1], 8);
    }
    Py_XDECREF(bits);
    Py_XDECREF(high);
    return whole;
}

/* The answer for one partition; 0 where it has an error, a divergence, a better replica or aborted transactions. */
static int put_fetched(Writer *out, PyObject *outcome, int64_t index, PyObject *records, int is_committed) {
    int64_t error, read_from, high_watermark, stable, log_start;
    PyObject *found = PyTuple_GetItem(outcome, OUTCOME_FOUND);
    if (!int_item(outcome, OUTCOME_ERROR, &error) || !int_item(outcome, OUTCOME_READ_FROM, &read_from)) return 0;
    if (error || read_from != -1 || PyTuple_GetItem(outcome, OUTCOME_DIVERGING) != Py_None) return 0;
    if (!PyTuple_Check(found) || PyTuple_Size(found) != FOUND_FIELDS || !PyBytes_Check(records)) return 0;
    if (PyObject_Size(PyTuple_GetItem(found, FOUND_ABORTED)) != 0) return 0;
    if (!int_item(found, FOUND_HIGH_WATERMARK, &high_watermark) || !int_item(found, FOUND_STABLE_OFFSET, &stable)) return 0;
    if (!int_item(found, FOUND_LOG_START, &log_start)) return 0;
    if (!put(out, index, 4) || !put(out, 0, 2) || !put(out, high_watermark, 8) || !put(out, stable, 8)) return 0;
    if (!put(out, log_start, 8) || !put(out, is_committed ? 1 : 0, 1) || !put(out, -1, 4)) return 0;
    if (!put_length(out, PyBytes_Size(records), 1, 4)) return 0;
    return put_bytes(out, PyBytes_AsString(records), PyBytes_Size(records)) && put(out, 0, 1);
}

/* The answers for the partitions of one topic, from the outcome at `first` on; the place after them, or -1. */
static Py_ssize_t put_fetched_topic(
    Writer *out, PyObject *outcomes, Py_ssize_t first, Py_ssize_t count, PyObject *records, int version, int is_committed) {
    Place topic, place;
    Py_ssize_t end = first + 1, at;
    if (!read_place(PyList_GetItem(outcomes, first), &topic)) return -1;
    int whole = 1;
    for (int is_same = 1; end < count; end++) {
        whole = read_place(PyList_GetItem(outcomes, end), &place);
        is_same = whole && is_same_topic(&topic, &place);
        if (whole) forget_place(&place);
        if (!is_same) break;
    }
    if (whole) whole = version >= FIRST_FETCH_WITH_IDS ? put_topic_id(out, topic.id) : put_topic_name(out, topic.name);
    whole = whole && put_length(out, end - first, 1, 4);
    for (at = first; whole && at < end; at++) {
        PyObject *outcome = PyList_GetItem(outcomes, at);
        whole = read_place(outcome, &place);
        if (!whole) break;
        whole = put_fetched(out, outcome, place.index, PyList_GetItem(records, at), is_committed);
        forget_place(&place);
    }
    forget_place(&topic);
    return whole && put(out, 0, 1) ? end : -1;
}

static int put_fetch_response(
    Writer *out, PyObject *outcomes, PyObject *records, int64_t session_id, int64_t correlation_id, int version, int is_committed) {
    Py_ssize_t count = PyList_Size(outcomes), next = 0, topics = 0;
    for (Py_ssize_t at = 0; at < count; at++) {
        PyObject *outcome = PyList_GetItem(outcomes, at);
        if (!PyTuple_Check(outcome) || PyTuple_Size(outcome) != OUTCOME_FIELDS) return 0;
    }
    if (!put(out, 0, 4) || !put(out, correlation_id, 4) || !put(out, 0, 1)) return 0;
    if (!put(out, 0, 4) || !put(out, 0, 2) || !put(out, session_id, 4)) return 0;
    Writer body = {PyMem_Malloc(256), 0, 256};
    while (body.data != NULL && next >= 0 && next < count) {
        next = put_fetched_topic(&body, outcomes, next, count, records, version, is_committed);
        topics++;
    }
    int whole = body.data != NULL && next == count && put_length(out, topics, 1, 4);
    whole = whole && put_bytes(out, (const char *)body.data, (Py_ssize_t)body.size) && put(out, 0, 1);
    PyMem_Free(body.data);
    if (whole) write_be(out->data, out->size - 4, 4);
    return whole;
}
