/* Records as Python objects, for compaction, coordinators and tools: the twins are `spans` of
   odradek/broker/log/core/batch_filter.py and `read_plain_records` of odradek/protocol/records.py.

   A list of all records of a batch, or NULL without an exception when any of them is wrong or out of the ordinary. */

enum { LISTED_BYTES_MAX = 1 << 20 };

static newfunc new_tuple; /* tuple.__new__: makes a NamedTuple without its Python-level constructor */

/* A tuple of that type; takes the values, and fails if any of them could not be made. */
static PyObject *tuple_of(PyObject *type, PyObject **values, Py_ssize_t count) {
    PyObject *plain = PyTuple_New(count), *made = NULL;
    int whole = plain != NULL;
    for (Py_ssize_t index = 0; index < count; index++) {
        if (values[index] == NULL) whole = 0;
        if (plain == NULL) Py_XDECREF(values[index]);
        else PyTuple_SetItem(plain, index, values[index]);
    }
    if (whole) {
        PyObject *arguments = PyTuple_New(1);
        if (arguments != NULL) {
            PyTuple_SetItem(arguments, 0, plain);
            made = new_tuple((PyTypeObject *)type, arguments, NULL);
            Py_DECREF(arguments);
            return made;
        }
    }
    Py_XDECREF(plain);
    return NULL;
}

typedef struct {
    PyObject *type;
    int64_t base_offset, base_timestamp;
    int is_append_time;
} RecordTerms;

/* One record: fields as positions, sizes below zero for none. */
typedef struct {
    int64_t start, timestamp_end, stop, timestamp_delta, offset_delta, key_at, key_size, value_at, value_size;
} Fields;

typedef PyObject *(*MakeObject)(const Cursor *after_value, const Fields *fields, const RecordTerms *terms);

static int read_field(Cursor *cursor, int64_t stop, int64_t *at, int64_t *size) {
    if (!read_varint(cursor, MAX_VARINT_BYTES, size)) return 0;
    *at = cursor->at;
    if (*size <= 0) return 1;
    if (*size > stop - cursor->at) return 0;
    cursor->at += *size;
    return 1;
}

/* Up to the headers, which have a byte at least. */
static int read_fields(Cursor *cursor, Fields *fields) {
    int64_t length;
    fields->start = cursor->at;
    if (!read_varint(cursor, MAX_VARINT_BYTES, &length) || length < 0 || length > cursor->end - cursor->at) return 0;
    fields->stop = cursor->at + length;
    cursor->at += 1;
    if (!read_varint(cursor, MAX_VARINT_BYTES, &fields->timestamp_delta)) return 0;
    fields->timestamp_end = cursor->at;
    if (!read_varint(cursor, MAX_VARINT_BYTES, &fields->offset_delta)) return 0;
    if (!read_field(cursor, fields->stop, &fields->key_at, &fields->key_size)) return 0;
    if (!read_field(cursor, fields->stop, &fields->value_at, &fields->value_size)) return 0;
    return cursor->at < fields->stop;
}

static PyObject *list_records(Cursor cursor, int64_t expected, MakeObject make, const RecordTerms *terms) {
    PyObject *found = PyList_New(0);
    for (int64_t count = 0; found != NULL && count < expected; count++) {
        Fields fields = {0};
        PyObject *object = read_fields(&cursor, &fields) ? make(&cursor, &fields, terms) : NULL;
        if (object == NULL || PyList_Append(found, object) < 0) Py_CLEAR(found);
        Py_XDECREF(object);
        cursor.at = fields.stop;
    }
    if (found != NULL && cursor.at != cursor.end) Py_CLEAR(found);
    return found;
}

static PyObject *found_or_none(PyObject *found) {
    if (found != NULL || PyErr_Occurred()) return found;
    Py_RETURN_NONE;
}

static PyObject *bytes_or_none(const Cursor *cursor, int64_t at, int64_t size) {
    if (size >= 0) return PyBytes_FromStringAndSize((const char *)cursor->data + at, (Py_ssize_t)size);
    Py_INCREF(Py_None);
    return Py_None;
}

static PyObject *span_object(const Cursor *cursor, const Fields *fields, const RecordTerms *terms) {
    PyObject *values[] = {
        PyLong_FromLongLong(fields->start),
        PyLong_FromLongLong(fields->timestamp_end),
        PyLong_FromLongLong(fields->stop),
        PyLong_FromLongLong(fields->timestamp_delta),
        PyLong_FromLongLong(fields->offset_delta),
        bytes_or_none(cursor, fields->key_at, fields->key_size),
        PyBool_FromLong(fields->value_size < 0),
    };
    return tuple_of((PyObject *)&PyTuple_Type, values, 7);
}

static PyObject *headers_object(Cursor cursor, int64_t stop) {
    int64_t count, at, size;
    if (!read_varint(&cursor, MAX_VARINT_BYTES, &count) || count < 0 || count > stop - cursor.at) return NULL;
    if (!count) return cursor.at == stop ? PyTuple_New(0) : NULL;
    PyObject *found = PyList_New(0);
    while (found != NULL && count--) {
        PyObject *pair[2] = {NULL, NULL}, *both = NULL;
        if (read_field(&cursor, stop, &at, &size) && size >= 0 && cursor.at <= stop) {
            pair[0] = PyUnicode_DecodeUTF8((const char *)cursor.data + at, (Py_ssize_t)size, "replace");
            if (read_field(&cursor, stop, &at, &size) && cursor.at <= stop) pair[1] = bytes_or_none(&cursor, at, size);
            both = tuple_of((PyObject *)&PyTuple_Type, pair, 2);
        }
        if (both == NULL || PyList_Append(found, both) < 0) Py_CLEAR(found);
        Py_XDECREF(both);
    }
    if (found != NULL && cursor.at != stop) Py_CLEAR(found);
    return found;
}

static PyObject *record_object(const Cursor *cursor, const Fields *fields, const RecordTerms *terms) {
    int64_t offset, timestamp = terms->base_timestamp;
    if (__builtin_add_overflow(terms->base_offset, fields->offset_delta, &offset)) return NULL;
    if (!terms->is_append_time && __builtin_add_overflow(timestamp, fields->timestamp_delta, &timestamp)) return NULL;
    PyObject *headers = headers_object(*cursor, fields->stop);
    if (headers == NULL) return NULL;
    PyObject *values[] = {
        PyLong_FromLongLong(offset),
        PyLong_FromLongLong(timestamp),
        bytes_or_none(cursor, fields->key_at, fields->key_size),
        bytes_or_none(cursor, fields->value_at, fields->value_size),
        headers,
    };
    return tuple_of(terms->type, values, 5);
}
