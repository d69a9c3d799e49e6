/* Batches as a follower gets them: the twin is `split_into_runs` of odradek/broker/log/core/replicated.py. */

enum { FETCHED_RUN, FETCHED_INFO, FETCHED_TYPES };

/* Whether no whole batch begins here: the end of the fetch has cut it. */
static int is_cut(const Py_buffer *data, int64_t pos) {
    int64_t left = data->len - pos;
    if (left < LOG_OVERHEAD) return 1;
    int32_t length = (int32_t)read_be((const uint8_t *)data->buf + pos + LENGTH_AT, 4);
    return left < (int64_t)length + LOG_OVERHEAD;
}

static int add_epoch(PyObject *epochs, int64_t epoch, int64_t base_offset) {
    PyObject *begun = Py_BuildValue("(LL)", (long long)epoch, (long long)base_offset);
    int done = begun != NULL && PyList_Append(epochs, begun) == 0;
    Py_XDECREF(begun);
    return done;
}

/* Lists the batches; returns where they end, or -1 where they are not sound, one after the other, and in one segment. */
static int64_t list_fetched(
    const Py_buffer *data, PyObject *info_type, PyObject *infos, PyObject *epochs, int64_t next, int64_t room, int64_t *newest) {
    int64_t pos = 0, first = next, last_epoch = -1;
    Header header;
    while (!is_cut(data, pos)) {
        if (!header_at(data, pos, &header) || header.base_offset != next || header.last_offset_delta < 0) return -1;
        if (next > INT64_MAX / 2 || !is_sound(data, pos, &header)) return -1;
        int64_t end = pos + header.length + LOG_OVERHEAD, last = next + header.last_offset_delta;
        if (pos > 0 && (end > room || last - first > INT32_MAX)) return -1;
        if (header.leader_epoch != last_epoch && !add_epoch(epochs, header.leader_epoch, next)) return -1;
        PyObject *info = info_object(info_type, &header, next, pos);
        int done = info != NULL && PyList_Append(infos, info) == 0;
        Py_XDECREF(info);
        if (!done) return -1;
        if (header.max_timestamp > *newest) *newest = header.max_timestamp;
        last_epoch = header.leader_epoch;
        next = last + 1;
        pos = end;
    }
    return pos;
}

static PyObject *fetched_run(PyObject *types, PyObject *source, const Py_buffer *data, int64_t next_offset, int64_t segment_bytes) {
    PyObject *infos = PyList_New(0), *epochs = PyList_New(0);
    int64_t newest = -1, end = -1;
    if (infos != NULL && epochs != NULL && next_offset >= 0)
        end = list_fetched(data, PyTuple_GetItem(types, FETCHED_INFO), infos, epochs, next_offset, segment_bytes, &newest);
    if (end <= 0) {
        Py_XDECREF(infos);
        Py_XDECREF(epochs);
        return NULL;
    }
    Py_INCREF(Py_False);
    PyObject *values[] = {PySequence_GetSlice(source, 0, (Py_ssize_t)end), infos, epochs, PyLong_FromLongLong(newest), Py_False};
    return tuple_of(PyTuple_GetItem(types, FETCHED_RUN), values, 5);
}
