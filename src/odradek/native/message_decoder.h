/* Messages of the wire, read as their declarations say: the twin is the code that odradek/protocol/decoder_writer.py
   writes. A layout is made once per message and version, from the tuples of odradek/protocol/compiled_decoder.py.

   Every length and count is compared with the bytes that are left, and elements are paid for before they are read. Null
   where it may not be, text that is not UTF-8, wrong sizes and spent steps are left to the twin. */

enum Kind { BOOL, INT8, INT16, INT32, INT64, FLOAT64, UUID, STRING, BYTES, RECORDS, STRUCT, ARRAY, KINDS };
enum Default { VALUE, NEW_LIST, NEW_STRUCT };
enum {
    STRING_LENGTH_MAX = 0x7fff,
    SHORT_ARRAY_MAX = 16,
    SHORT_ARRAY_STEPS = 8,
    SHORT_ARRAY_VALUE_STEPS = 3,
    LONG_ARRAY_STEPS = 75,
    LONG_ARRAY_VALUE_STEPS = 8,
    TAGGED_SECTION_STEPS = 15
};

static const int SIZES[KINDS] = {1, 1, 2, 4, 8, 8, 16};
static const char *const LAYOUT = "odradek.layout";

typedef struct Layout Layout;

typedef struct {
    PyObject *slot; /* the descriptor by which the attribute is set */
    int kind, element, is_nullable, is_compact, tag;
    int64_t element_steps, element_size; /* the fewest bytes of an element */
    Layout *layout;                      /* of a struct, or of an array's structs */
} FieldLayout;

typedef struct {
    PyObject *slot, *value;
    int how;
} DefaultLayout;

struct Layout {
    PyObject *source; /* the tuple that it was made from, which keeps alive all that is pointed to */
    PyTypeObject *type;
    int is_flexible;
    int64_t tag_steps;
    Py_ssize_t fields, tagged, defaults; /* tagged fields lie behind the others */
    FieldLayout *field;
    DefaultLayout *unset;
};

typedef struct {
    PyObject *buffer, *uuid_of;
    const uint8_t *data;
    int64_t pos, end, steps;
} Reader;

static newfunc new_object;
static PyObject *no_arguments;
static descrsetfunc set_slot;

static PyObject *read_struct(Reader *reader, const Layout *layout);

static int64_t room(const Reader *reader) { return reader->end - reader->pos; }

static int read_uvarint(Reader *reader, int64_t *value) {
    *value = 0;
    for (int place = 0; place < 5; place++) {
        if (room(reader) < 1) return 0;
        uint8_t byte = reader->data[reader->pos++];
        *value |= (int64_t)(byte & 0x7f) << 7 * place;
        if (byte < 0x80) return 1;
    }
    return 0;
}

/* A length or count, -1 for null; 0 when it isn't there. */
static int read_length(Reader *reader, int kind, int is_compact, int64_t *length) {
    if (is_compact) {
        if (!read_uvarint(reader, length)) return 0;
        *length -= 1;
        return kind != STRING || *length <= STRING_LENGTH_MAX;
    }
    int size = kind == STRING ? 2 : 4;
    if (room(reader) < size) return 0;
    uint64_t raw = read_be(reader->data + reader->pos, size);
    *length = size == 2 ? (int16_t)raw : (int32_t)raw;
    reader->pos += size;
    return 1;
}

static PyObject *fixed_value(const Reader *reader, int kind, const uint8_t *at) {
    uint64_t raw = read_be(at, kind == UUID ? 0 : SIZES[kind]);
    switch (kind) {
        case BOOL: return PyBool_FromLong(raw != 0);
        case INT8: return PyLong_FromLong((int8_t)raw);
        case INT16: return PyLong_FromLong((int16_t)raw);
        case INT32: return PyLong_FromLong((int32_t)raw);
        case INT64: return PyLong_FromLongLong((int64_t)raw);
        case FLOAT64: {
            double number;
            memcpy(&number, &raw, 8);
            return PyFloat_FromDouble(number);
        }
        default: {
            PyObject *bytes = PyBytes_FromStringAndSize((const char *)at, 16), *uuid = NULL;
            if (bytes != NULL) uuid = PyObject_CallFunctionObjArgs(reader->uuid_of, bytes, NULL);
            Py_XDECREF(bytes);
            return uuid;
        }
    }
}

static PyObject *read_plain(Reader *reader, int kind, int is_nullable, int is_compact) {
    int64_t length, at = reader->pos;
    if (kind <= UUID) {
        if (room(reader) < SIZES[kind]) return NULL;
        reader->pos += SIZES[kind];
        return fixed_value(reader, kind, reader->data + at);
    }
    if (!read_length(reader, kind, is_compact, &length)) return NULL;
    if (length < 0) {
        if (!is_nullable) return NULL;
        Py_INCREF(Py_None);
        return Py_None;
    }
    if (length > room(reader)) return NULL;
    at = reader->pos;
    reader->pos += length;
    const char *bytes = (const char *)reader->data + at;
    if (kind == STRING) return PyUnicode_DecodeUTF8(bytes, (Py_ssize_t)length, NULL);
    if (kind == BYTES) return PyBytes_FromStringAndSize(bytes, (Py_ssize_t)length);
    return PySequence_GetSlice(reader->buffer, (Py_ssize_t)at, (Py_ssize_t)(at + length));
}

static int charge(Reader *reader, const FieldLayout *field, int64_t count) {
    if (field->element > FLOAT64) reader->steps -= count * field->element_steps;
    else if (count > SHORT_ARRAY_MAX) reader->steps -= count * LONG_ARRAY_VALUE_STEPS + LONG_ARRAY_STEPS;
    else if (count > 0) reader->steps -= count * SHORT_ARRAY_VALUE_STEPS + SHORT_ARRAY_STEPS;
    return reader->steps >= 0;
}

static PyObject *read_array(Reader *reader, const FieldLayout *field) {
    int64_t count;
    if (!read_length(reader, ARRAY, field->is_compact, &count)) return NULL;
    if (count < 0) {
        if (!field->is_nullable) return NULL;
        Py_INCREF(Py_None);
        return Py_None;
    }
    if (count > room(reader) / field->element_size || !charge(reader, field, count)) return NULL;
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (int64_t index = 0; list != NULL && index < count; index++) {
        PyObject *element = field->element == STRUCT ? read_struct(reader, field->layout)
                                                     : read_plain(reader, field->element, 0, field->is_compact);
        if (element == NULL) Py_CLEAR(list);
        else PyList_SetItem(list, (Py_ssize_t)index, element);
    }
    return list;
}

static PyObject *read_member(Reader *reader, const FieldLayout *field) {
    if (field->kind == ARRAY) return read_array(reader, field);
    if (field->kind != STRUCT) return read_plain(reader, field->kind, field->is_nullable, field->is_compact);
    if (field->is_nullable) {
        if (room(reader) < 1) return NULL;
        if ((int8_t)reader->data[reader->pos++] < 0) {
            Py_INCREF(Py_None);
            return Py_None;
        }
    }
    return read_struct(reader, field->layout);
}

static PyObject *unset_value(const DefaultLayout *unset) {
    if (unset->how == NEW_LIST) return PyList_New(0);
    if (unset->how == NEW_STRUCT) return PyObject_CallNoArgs(unset->value);
    Py_INCREF(unset->value);
    return unset->value;
}

static int set_member(PyObject *slot, PyObject *object, PyObject *value) {
    int done = value != NULL && set_slot(slot, object, value) == 0;
    Py_XDECREF(value);
    return done;
}

static int read_tagged(Reader *reader, const Layout *layout, PyObject *object) {
    int64_t count, tag, size;
    if (room(reader) > 0 && reader->data[reader->pos] == 0) {
        reader->pos++;
        return 1;
    }
    if (!read_uvarint(reader, &count)) return 0;
    reader->steps -= count * layout->tag_steps + TAGGED_SECTION_STEPS;
    if (count > room(reader) / 2 || reader->steps < 0) return 0;
    while (count--) {
        if (!read_uvarint(reader, &tag) || !read_uvarint(reader, &size) || size > room(reader)) return 0;
        int64_t stop = reader->pos + size;
        const FieldLayout *field = layout->field + layout->fields, *end = field + layout->tagged;
        while (field < end && field->tag != tag) field++;
        if (field == end) reader->pos = stop;
        else if (!set_member(field->slot, object, read_member(reader, field))) return 0;
        if (reader->pos != stop) return 0;
    }
    return 1;
}

static PyObject *read_struct(Reader *reader, const Layout *layout) {
    PyObject *object = new_object(layout->type, no_arguments, NULL);
    int done = object != NULL;
    for (Py_ssize_t index = 0; done && index < layout->fields; index++)
        done = set_member(layout->field[index].slot, object, read_member(reader, &layout->field[index]));
    for (Py_ssize_t index = 0; done && index < layout->defaults; index++)
        done = set_member(layout->unset[index].slot, object, unset_value(&layout->unset[index]));
    if (done && layout->is_flexible) done = read_tagged(reader, layout, object);
    if (!done) Py_CLEAR(object);
    return object;
}

/* ---- layouts */

static void free_layout(Layout *layout) {
    if (layout == NULL) return;
    for (Py_ssize_t index = 0; layout->field != NULL && index < layout->fields + layout->tagged; index++)
        free_layout(layout->field[index].layout);
    free(layout->field);
    free(layout->unset);
    Py_XDECREF(layout->source);
    free(layout);
}

static Layout *make_layout(PyObject *source);

static int make_field(PyObject *source, FieldLayout *field) {
    PyObject *inner;
    int given = PyArg_ParseTuple(source, "OiiippLLO", &field->slot, &field->tag, &field->kind, &field->element, &field->is_nullable,
                                 &field->is_compact, &field->element_steps, &field->element_size, &inner);
    if (!given || (inner != Py_None && (field->layout = make_layout(inner)) == NULL)) return 0;
    int has_struct = field->kind == STRUCT || (field->kind == ARRAY && field->element == STRUCT);
    int is_known = field->kind >= 0 && field->kind < KINDS && field->element >= 0 && field->element < ARRAY;
    if (is_known && field->element_size > 0 && (!has_struct || field->layout != NULL)) return 1;
    PyErr_SetString(PyExc_ValueError, "a field that cannot be read");
    return 0;
}

static Layout *make_layout(PyObject *source) {
    PyObject *type, *fields, *defaults;
    Py_ssize_t tagged;
    Layout *layout = calloc(1, sizeof(Layout));
    if (layout == NULL) return (Layout *)PyErr_NoMemory();
    Py_INCREF(source);
    layout->source = source;
    if (!PyArg_ParseTuple(source, "OpLnO!O!", &type, &layout->is_flexible, &layout->tag_steps, &tagged, &PyTuple_Type,
                          &fields, &PyTuple_Type, &defaults))
        goto failed;
    layout->type = (PyTypeObject *)type;
    layout->field = calloc((size_t)PyTuple_Size(fields) + 1, sizeof(FieldLayout));
    layout->unset = calloc((size_t)PyTuple_Size(defaults) + 1, sizeof(DefaultLayout));
    if (layout->field == NULL || layout->unset == NULL) {
        PyErr_NoMemory();
        goto failed;
    }
    for (; layout->fields < PyTuple_Size(fields); layout->fields++)
        if (!make_field(PyTuple_GetItem(fields, layout->fields), &layout->field[layout->fields])) {
            layout->fields++; /* so that what it has is freed */
            goto failed;
        }
    if (tagged < 0 || tagged > layout->fields) tagged = 0;
    layout->tagged = tagged;
    layout->fields -= tagged;
    for (; layout->defaults < PyTuple_Size(defaults); layout->defaults++) {
        DefaultLayout *unset = &layout->unset[layout->defaults];
        PyObject *given = PyTuple_GetItem(defaults, layout->defaults);
        if (!PyArg_ParseTuple(given, "OiO", &unset->slot, &unset->how, &unset->value)) goto failed;
    }
    return layout;
failed:
    free_layout(layout);
    return NULL;
}

static void free_capsule(PyObject *capsule) { free_layout(PyCapsule_GetPointer(capsule, LAYOUT)); }
