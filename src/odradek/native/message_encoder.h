/* Messages of the wire, written as their declarations say: the twin is the code that odradek/protocol/encoder_writer.py
   writes. A layout is that of the decoder (message_decoder.h); its defaults are those of fields that have to hold theirs,
   because the version has no room for them, and behind them those of the tagged fields.

   Values that a field can't take, other lists than plain and shared ones, and records other than bytes and slices of files
   are left to the twin. */

typedef struct {
    Writer out;
    PyObject *uuid_type, *slice_type, *shared_type, *splices;
    Py_ssize_t before; /* bytes of the message that are written already */
} Encoder;

static descrgetfunc get_slot;
static PyObject *encodings_key; /* interned name of an attribute */

enum { ENCODED_TYPES = 3, SLICE_SIZE = 2 /* field of FileSlice */ };

static int put_struct(Encoder *encoder, const Layout *layout, PyObject *object);

static int intern_encoder_names(void) { return (encodings_key = PyUnicode_InternFromString("encodings")) != NULL; }

static int put_number(Writer *out, int kind, PyObject *value) {
    if (kind == BOOL) {
        int truth = PyObject_IsTrue(value);
        return truth >= 0 && put(out, truth, 1);
    }
    if (kind == FLOAT64) {
        double number = PyFloat_Check(value) ? PyFloat_AsDouble(value) : -1.0;
        uint64_t raw;
        memcpy(&raw, &number, 8);
        return PyFloat_Check(value) && put(out, (int64_t)raw, 8);
    }
    int64_t number;
    if (!PyLong_Check(value) || !as_int64(value, &number)) return 0;
    int64_t beyond = SIZES[kind] < 8 ? (int64_t)1 << (8 * SIZES[kind] - 1) : 0;
    if (beyond && (number >= beyond || number < -beyond)) return 0;
    return put(out, number, SIZES[kind]);
}

static int put_uuid(const Encoder *encoder, Writer *out, PyObject *value) {
    if ((PyObject *)Py_TYPE(value) != encoder->uuid_type) return 0;
    PyObject *number = PyObject_GetAttr(value, int_key);
    int done = number != NULL && put_topic_id(out, number);
    Py_XDECREF(number);
    return done;
}

static int put_null(Writer *out, int is_compact, int size) { return is_compact ? put(out, 0, 1) : put(out, -1, size); }

static int put_text(Writer *out, PyObject *value, int is_compact) {
    Py_ssize_t size;
    const char *text = PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, &size) : NULL;
    return text != NULL && size <= STRING_LENGTH_MAX && put_length(out, size, is_compact, 2) && put_bytes(out, text, size);
}

static int put_data(Writer *out, PyObject *value, int is_compact) {
    Py_buffer data;
    if (!PyBytes_Check(value) && !PyByteArray_Check(value) && !PyMemoryView_Check(value)) return 0;
    if (PyObject_GetBuffer(value, &data, PyBUF_SIMPLE) < 0) return 0;
    int done = data.itemsize == 1 && data.len < INT32_MAX && put_length(out, data.len, is_compact, 4);
    done = done && put_bytes(out, data.buf, data.len);
    PyBuffer_Release(&data);
    return done;
}

/* Records that stay in their file: their length is written, and their place is noted. */
static int put_slice(Encoder *encoder, PyObject *value, int is_compact) {
    Writer *out = &encoder->out;
    int64_t size;
    if (!int_item(value, SLICE_SIZE, &size) || size < 0 || size >= INT32_MAX || !put_length(out, size, is_compact, 4)) return 0;
    if (!size) return 1;
    PyObject *place = Py_BuildValue("(nO)", encoder->before + (Py_ssize_t)out->size, value);
    int done = place != NULL && PyList_Append(encoder->splices, place) == 0;
    Py_XDECREF(place);
    return done;
}

static int put_plain(Encoder *encoder, int kind, int is_nullable, int is_compact, PyObject *value) {
    Writer *out = &encoder->out;
    if (kind < UUID) return put_number(out, kind, value);
    if (kind == UUID) return put_uuid(encoder, out, value);
    if (value == Py_None) return (is_nullable || kind == RECORDS) && put_null(out, is_compact, kind == STRING ? 2 : 4);
    if (kind == STRING) return put_text(out, value, is_compact);
    int is_slice = kind == RECORDS && (PyObject *)Py_TYPE(value) == encoder->slice_type;
    return is_slice ? put_slice(encoder, value, is_compact) : put_data(out, value, is_compact);
}

static int put_elements(Encoder *encoder, const FieldLayout *field, PyObject *list, Py_ssize_t count) {
    int done = 1;
    for (Py_ssize_t index = 0; done && index < count; index++) {
        PyObject *element = PySequence_GetItem(list, index); /* counted: an element may run code that empties the list */
        done = element != NULL;
        if (done && field->element == STRUCT) done = put_struct(encoder, field->layout, element);
        else if (done) done = put_plain(encoder, field->element, 0, field->is_compact, element);
        Py_XDECREF(element);
    }
    return done;
}

/* The elements of a SharedList: as they were written for another message with this layout, or for the next ones. */
static int put_shared(Encoder *encoder, const FieldLayout *field, PyObject *list, Py_ssize_t count) {
    Writer *out = &encoder->out;
    size_t start = out->size;
    Py_ssize_t splices = PyList_Size(encoder->splices);
    PyObject *key = PyLong_FromVoidPtr(field->layout), *encodings = PyObject_GetAttr(list, encodings_key);
    int done = key != NULL && encodings != NULL && PyDict_Check(encodings);
    PyObject *known = done ? PyDict_GetItemWithError(encodings, key) : NULL;
    if (known != NULL) done = PyBytes_Check(known) && put_bytes(out, PyBytes_AsString(known), PyBytes_Size(known));
    else if (done && put_elements(encoder, field, list, count) && PyList_Size(encoder->splices) == splices) {
        PyObject *written = PyBytes_FromStringAndSize((const char *)out->data + start, (Py_ssize_t)(out->size - start));
        done = written != NULL && PyDict_SetItem(encodings, key, written) == 0;
        Py_XDECREF(written);
    } else done = 0;
    Py_XDECREF(key);
    Py_XDECREF(encodings);
    return done;
}

static int put_array(Encoder *encoder, const FieldLayout *field, PyObject *list) {
    if (list == Py_None) return field->is_nullable && put_null(&encoder->out, field->is_compact, 4);
    int is_shared = (PyObject *)Py_TYPE(list) == encoder->shared_type && field->element == STRUCT;
    if (!is_shared && (PyObject *)Py_TYPE(list) != (PyObject *)&PyList_Type) return 0;
    Py_ssize_t count = PyList_Size(list);
    if (count >= INT32_MAX || !put_length(&encoder->out, count, field->is_compact, 4)) return 0;
    return is_shared ? put_shared(encoder, field, list, count) : put_elements(encoder, field, list, count);
}

static int put_value(Encoder *encoder, const FieldLayout *field, PyObject *value) {
    if (field->kind == ARRAY) return put_array(encoder, field, value);
    if (field->kind != STRUCT) return put_plain(encoder, field->kind, field->is_nullable, field->is_compact, value);
    if (field->is_nullable) {
        if (value == Py_None) return put(&encoder->out, -1, 1);
        if (!put(&encoder->out, 1, 1)) return 0;
    }
    return put_struct(encoder, field->layout, value);
}

static int put_member(Encoder *encoder, const FieldLayout *field, PyObject *object) {
    PyObject *value = get_slot(field->slot, object, (PyObject *)Py_TYPE(object));
    int done = value != NULL && put_value(encoder, field, value);
    Py_XDECREF(value);
    return done;
}

/* Whether the value is another than the field's default; -1: that is left to the twin. */
static int differs(const DefaultLayout *unset, PyObject *object) {
    PyObject *value = get_slot(unset->slot, object, (PyObject *)Py_TYPE(object));
    if (value == NULL) return -1;
    int found = -1;
    if (unset->how == NEW_LIST) found = PyList_Check(value) ? PyList_Size(value) != 0 : -1;
    else if (unset->how == VALUE) found = PyObject_RichCompareBool(value, unset->value, Py_NE);
    Py_DECREF(value);
    return found;
}

/* A tagged field with its tag and size, which has to be known first. None has records. */
static int put_tagged_field(Encoder *encoder, const FieldLayout *field, PyObject *object) {
    Writer *out = &encoder->out;
    if (!put_length(out, field->tag - 1, 1, 4)) return 0;
    Writer outer = *out;
    *out = (Writer){PyMem_Malloc(64), 0, 64};
    int done = out->data != NULL && put_member(encoder, field, object);
    Writer body = *out;
    *out = outer;
    done = done && put_length(out, (int64_t)body.size - 1, 1, 4) && put_bytes(out, (const char *)body.data, (Py_ssize_t)body.size);
    PyMem_Free(body.data);
    return done;
}

static int put_tagged(Encoder *encoder, const Layout *layout, PyObject *object) {
    const DefaultLayout *unset = layout->unset + layout->defaults - layout->tagged;
    const FieldLayout *field = layout->field + layout->fields;
    int64_t count = 0;
    for (Py_ssize_t index = 0; index < layout->tagged; index++) {
        int is_set = differs(unset + index, object);
        if (is_set < 0) return 0;
        count += is_set;
    }
    if (!put_length(&encoder->out, count - 1, 1, 4)) return 0;
    for (Py_ssize_t index = 0; count && index < layout->tagged; index++) {
        int is_set = differs(unset + index, object);
        if (is_set < 0 || (is_set && !put_tagged_field(encoder, field + index, object))) return 0;
    }
    return 1;
}

static int put_struct(Encoder *encoder, const Layout *layout, PyObject *object) {
    for (Py_ssize_t index = 0; index < layout->defaults - layout->tagged; index++)
        if (differs(&layout->unset[index], object) != 0) return 0;
    for (Py_ssize_t index = 0; index < layout->fields; index++)
        if (!put_member(encoder, &layout->field[index], object)) return 0;
    return !layout->is_flexible || put_tagged(encoder, layout, object);
}

/* Appends the message to the bytes, and the places of its slices to the list; 0, and the bytes are as before. */
static int encode_message(Encoder *encoder, const Layout *layout, PyObject *message, PyObject *bytes) {
    encoder->before = PyByteArray_Size(bytes);
    encoder->out = (Writer){PyMem_Malloc(256), 0, 256};
    int done = encoder->out.data != NULL && put_struct(encoder, layout, message);
    done = done && PyByteArray_Size(bytes) == encoder->before;
    done = done && PyByteArray_Resize(bytes, encoder->before + (Py_ssize_t)encoder->out.size) == 0;
    if (done) memcpy(PyByteArray_AsString(bytes) + encoder->before, encoder->out.data, encoder->out.size);
    PyMem_Free(encoder->out.data);
    return done;
}
