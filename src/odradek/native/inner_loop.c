/* The compiled inner loop: per batch, what odradek/protocol and odradek/broker/log/core do in Python too.

   Each function answers only for bytes that are sound and usual. For anything else it answers None (or -1), and the
   Python twin does the same work again: refusals, their words and rare cases have one home, and it isn't here. So the
   rule that tests hold is: an answer from here is the twin's answer, to the value and to the step.

   Nothing here raises but for wrong arguments; nothing keeps state, a lock or a reference. Written for the limited API of
   Python 3.11: one build serves every later version. odradek/native/interface.py says what each function is for. */

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "crc32c.h"
#include "record_walk.h"
#include "record_objects.h"
#include "record_columns.h"

#define INTERFACE 7 /* as in load.py: a library built from another source is not used */

enum {
    HEADER_SIZE = 61,
    LOG_OVERHEAD = 12,
    MIN_LENGTH = HEADER_SIZE - LOG_OVERHEAD,
    MAGIC = 2,
    LENGTH_AT = 8,
    LEADER_EPOCH_AT = 12,
    MAGIC_AT = 16,
    CRC_AT = 17,
    ATTRIBUTES_AT = 21,
    CODEC_MASK = 0x07,
    LOG_APPEND_TIME_BIT = 0x08,
    TRANSACTIONAL_BIT = 0x10,
    CONTROL_BIT = 0x20,
    MAX_SEQUENCE = 0x7fffffff,
    NO_TIMESTAMP = -1,
    GIL_BYTES_MAX = 1 << 20 /* a tenth of a millisecond; beyond that other threads may run */
};

typedef struct {
    int64_t base_offset;
    int32_t length, leader_epoch;
    int8_t magic;
    uint32_t crc;
    int16_t attributes;
    int32_t last_offset_delta;
    int64_t base_timestamp, max_timestamp, producer_id;
    int16_t producer_epoch;
    int32_t base_sequence, record_count;
} Header;

static uint64_t read_be(const uint8_t *at, int size) {
    uint64_t value = 0;
    while (size--) value = value << 8 | *at++;
    return value;
}

static void write_be(uint8_t *at, uint64_t value, int size) {
    while (size--) {
        at[size] = (uint8_t)value;
        value >>= 8;
    }
}

#include "message_decoder.h"

static void read_header(const uint8_t *at, Header *header) {
    header->base_offset = (int64_t)read_be(at, 8);
    header->length = (int32_t)read_be(at + LENGTH_AT, 4);
    header->leader_epoch = (int32_t)read_be(at + LEADER_EPOCH_AT, 4);
    header->magic = (int8_t)at[MAGIC_AT];
    header->crc = (uint32_t)read_be(at + CRC_AT, 4);
    header->attributes = (int16_t)read_be(at + ATTRIBUTES_AT, 2);
    header->last_offset_delta = (int32_t)read_be(at + 23, 4);
    header->base_timestamp = (int64_t)read_be(at + 27, 8);
    header->max_timestamp = (int64_t)read_be(at + 35, 8);
    header->producer_id = (int64_t)read_be(at + 43, 8);
    header->producer_epoch = (int16_t)read_be(at + 51, 2);
    header->base_sequence = (int32_t)read_be(at + 53, 4);
    header->record_count = (int32_t)read_be(at + 57, 4);
}

static PyObject *header_object(PyObject *type, const Header *header) {
    PyObject *values[] = {
        PyLong_FromLongLong(header->base_offset),    PyLong_FromLong(header->length),
        PyLong_FromLong(header->leader_epoch),       PyLong_FromLong(header->magic),
        PyLong_FromUnsignedLong(header->crc),        PyLong_FromLong(header->attributes),
        PyLong_FromLong(header->last_offset_delta),  PyLong_FromLongLong(header->base_timestamp),
        PyLong_FromLongLong(header->max_timestamp),  PyLong_FromLongLong(header->producer_id),
        PyLong_FromLong(header->producer_epoch),     PyLong_FromLong(header->base_sequence),
        PyLong_FromLong(header->record_count),
    };
    return tuple_of(type, values, 13);
}

static PyObject *info_object(PyObject *type, const Header *header, int64_t base_offset, int64_t position) {
    int64_t delta = header->last_offset_delta, sequence = header->base_sequence;
    PyObject *values[] = {
        PyLong_FromLongLong(base_offset),
        PyLong_FromLongLong((int64_t)((uint64_t)base_offset + (uint64_t)delta)),
        PyLong_FromLongLong(header->max_timestamp),
        PyLong_FromLongLong(position),
        PyLong_FromLongLong((int64_t)header->length + LOG_OVERHEAD),
        PyLong_FromLongLong(header->producer_id),
        PyLong_FromLong(header->producer_epoch),
        PyLong_FromLongLong(sequence),
        PyLong_FromLongLong(sequence < 0 ? sequence : (sequence + delta) & MAX_SEQUENCE),
        PyBool_FromLong(header->attributes & TRANSACTIONAL_BIT),
        PyBool_FromLong(header->attributes & CONTROL_BIT),
    };
    return tuple_of(type, values, 11);
}

/* The header at `pos`, if it is there whole and says a length that a batch can have. */
static int header_at(const Py_buffer *data, int64_t pos, Header *header) {
    if (pos < 0 || pos > data->len || data->len - pos < HEADER_SIZE) return 0;
    read_header((const uint8_t *)data->buf + pos, header);
    return header->length >= MIN_LENGTH;
}

/* Whether the whole batch is there, is of magic 2 and has the checksum that it says. */
static int is_sound(const Py_buffer *data, int64_t pos, const Header *header) {
    int64_t size = (int64_t)header->length + LOG_OVERHEAD;
    if (header->magic != MAGIC || size > data->len - pos) return 0;
    return crc32c((const uint8_t *)data->buf + pos + ATTRIBUTES_AT, (size_t)(size - ATTRIBUTES_AT)) == header->crc;
}

static int has_arguments(Py_ssize_t given, Py_ssize_t wanted) {
    if (given == wanted) return 1;
    PyErr_Format(PyExc_TypeError, "%zd arguments instead of %zd", given, wanted);
    return 0;
}

static int has_items(PyObject *tuple, Py_ssize_t wanted) {
    if (PyTuple_Check(tuple) && PyTuple_Size(tuple) == wanted) return 1;
    PyErr_Format(PyExc_TypeError, "not a tuple of %zd", wanted);
    return 0;
}

static int as_int64(PyObject *object, int64_t *value) {
    *value = PyLong_AsLongLong(object);
    return *value != -1 || PyErr_Occurred() == NULL;
}

static int begin_read(PyObject *object, Py_buffer *data) { return PyObject_GetBuffer(object, data, PyBUF_SIMPLE) == 0; }

static void patch_batch(const Py_buffer *data, int64_t base_offset, int64_t leader_epoch) {
    write_be(data->buf, (uint64_t)base_offset, 8);
    write_be((uint8_t *)data->buf + LEADER_EPOCH_AT, (uint64_t)leader_epoch, 4);
}

#include "produce_messages.h"
#include "produce_batches.h"
#include "fetch_response.h"
#include "message_encoder.h"
#include "fetched_batches.h"

/* NULL without an exception becomes None, and so does a failure that the twin will meet too. */
static PyObject *answer_or_none(PyObject *answer) {
    if (answer != NULL) return answer;
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_MemoryError)) return NULL;
    PyErr_Clear();
    Py_RETURN_NONE;
}

/* new_buffer(size): its content is undefined, which saves the time of clearing it */
static PyObject *py_new_buffer(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    int64_t size;
    if (!has_arguments(count, 1) || !as_int64(args[0], &size)) return NULL;
    if (size < 0) {
        PyErr_SetString(PyExc_ValueError, "a buffer of a negative size");
        return NULL;
    }
    return PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)size);
}

/* keep_freed_memory(kept_bytes, mapped_bytes): settings of the allocator of the C library, where they are known */
static PyObject *py_keep_freed_memory(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    int64_t kept, mapped;
    if (!has_arguments(count, 2) || !as_int64(args[0], &kept) || !as_int64(args[1], &mapped)) return NULL;
    if (kept < 0 || kept > INT_MAX || mapped < 0 || mapped > INT_MAX) {
        PyErr_SetString(PyExc_ValueError, "not a size that the allocator takes");
        return NULL;
    }
#ifdef __GLIBC__
    return PyBool_FromLong(mallopt(M_MMAP_THRESHOLD, (int)mapped) && mallopt(M_TRIM_THRESHOLD, (int)kept));
#else
    Py_RETURN_FALSE;
#endif
}

/* checksum(data, start, end) */
static PyObject *py_checksum(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    int64_t start, end;
    Py_buffer data;
    if (!has_arguments(count, 3) || !as_int64(args[1], &start) || !as_int64(args[2], &end)) return NULL;
    if (!begin_read(args[0], &data)) return NULL;
    if (start < 0 || end < start || end > data.len) {
        PyBuffer_Release(&data);
        PyErr_SetString(PyExc_IndexError, "checksum of bytes that are not there");
        return NULL;
    }
    uint32_t sum;
    const uint8_t *from = (const uint8_t *)data.buf + start;
    if (end - start > GIL_BYTES_MAX) {
        Py_BEGIN_ALLOW_THREADS
        sum = crc32c(from, (size_t)(end - start));
        Py_END_ALLOW_THREADS
    } else {
        sum = crc32c(from, (size_t)(end - start));
    }
    PyBuffer_Release(&data);
    return PyLong_FromUnsignedLong(sum);
}

/* read_header(BatchHeader, data, pos) */
static PyObject *py_read_header(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    int64_t pos;
    Py_buffer data;
    Header header;
    if (!has_arguments(count, 3) || !as_int64(args[2], &pos) || !begin_read(args[1], &data)) return NULL;
    int found = header_at(&data, pos, &header);
    PyBuffer_Release(&data);
    if (!found) Py_RETURN_NONE;
    return header_object(args[0], &header);
}

/* The rules of odradek/broker/log/core/validation.py for a producer's batch that is kept as it is; steps or -1. */
static int64_t check_batch(const Py_buffer *data, int64_t max_size, int64_t newest, int64_t steps_left, Header *header) {
    if (!header_at(data, 0, header) || (int64_t)header->length + LOG_OVERHEAD != data->len) return -1;
    if (data->len > max_size || !is_sound(data, 0, header)) return -1;
    int64_t count = header->record_count;
    if (header->base_offset != 0 || header->attributes & (CONTROL_BIT | LOG_APPEND_TIME_BIT)) return -1;
    if (header->producer_id >= 0 && header->base_sequence < 0) return -1;
    if (count <= 0 || count != (int64_t)header->last_offset_delta + 1) return -1;
    if (header->max_timestamp < NO_TIMESTAMP || header->max_timestamp > newest) return -1;
    if (header->attributes & CODEC_MASK) return 0;
    int64_t steps = count * LENGTH_STEPS, payload = data->len - HEADER_SIZE;
    if (count * MIN_RECORD_SIZE > payload || steps > steps_left) return -1;
    Cursor records = {(const uint8_t *)data->buf + HEADER_SIZE, 0, payload};
    return count_records(records, count, &steps) && steps <= steps_left ? steps : -1;
}

/* check_batch((CheckedRecords, CheckedBatch, BatchHeader), rules, limits, data, now_ms, steps_left) */
static PyObject *py_check_batch(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    int64_t steps_left, steps;
    Py_buffer data;
    Header header;
    Limits limits;
    if (!has_arguments(count, 6) || !has_items(args[0], CHECKED_TYPES) || !has_items(args[2], LIMITS)) return NULL;
    if (!read_limits(args[2], args[4], &limits) || !as_int64(args[5], &steps_left) || !begin_read(args[3], &data)) return NULL;
    if (data.len > GIL_BYTES_MAX) {
        Py_BEGIN_ALLOW_THREADS
        steps = check_batch(&data, limits.max_bytes, limits.newest, steps_left, &header);
        Py_END_ALLOW_THREADS
    } else {
        steps = check_batch(&data, limits.max_bytes, limits.newest, steps_left, &header);
    }
    PyBuffer_Release(&data);
    if (steps < 0) Py_RETURN_NONE;
    long long paid = header.attributes & CODEC_MASK ? -1 : steps;
    PyObject *checked = checked_records(args[0], args[1], args[3], &header, &limits);
    return checked == NULL ? NULL : Py_BuildValue("(NL)", checked, paid);
}

/* flat_batches(TopicPartition, topics, internal) */
static PyObject *py_flat_batches(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (!has_arguments(count, 3)) return NULL;
    if (!PyList_Check(args[1]) || !PyAnySet_Check(args[2])) Py_RETURN_NONE;
    PyObject *found = PyList_New(0);
    for (Py_ssize_t place = 0; found != NULL && place < PyList_Size(args[1]); place++) {
        PyObject *topic = PySequence_GetItem(args[1], place);
        if (topic == NULL || !list_topic(found, args[0], topic, args[2])) Py_CLEAR(found);
        Py_XDECREF(topic);
    }
    return answer_or_none(found);
}

/* place_next(types, batches, entries, base_offset, leader_epoch, kept) */
static PyObject *py_place_next(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    int64_t base_offset, leader_epoch, kept;
    if (!has_arguments(count, 6) || !has_items(args[0], PLACED_TYPES) || !as_int64(args[3], &base_offset)) return NULL;
    if (!as_int64(args[4], &leader_epoch) || !as_int64(args[5], &kept)) return NULL;
    if (!PyList_Check(args[1]) || PyList_Size(args[1]) != 1 || !PyDict_Check(args[2])) Py_RETURN_NONE;
    PyObject *batch = with_reference(PyList_GetItem(args[1], 0));
    int is_batch = PyTuple_Check(batch) && PyTuple_Size(batch) == BATCH_FIELDS;
    PyObject *placed = is_batch ? place_next(args[0], batch, args[2], base_offset, leader_epoch, (Py_ssize_t)kept) : NULL;
    Py_DECREF(batch);
    return answer_or_none(placed);
}

/* place_batch(BatchInfo, data, base_offset, leader_epoch, position) */
static PyObject *py_place_batch(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    int64_t base_offset, leader_epoch, position;
    Py_buffer data;
    Header header;
    if (!has_arguments(count, 5) || !as_int64(args[2], &base_offset) || !as_int64(args[3], &leader_epoch)) return NULL;
    if (!as_int64(args[4], &position)) return NULL;
    if (PyObject_GetBuffer(args[1], &data, PyBUF_WRITABLE) < 0) return NULL;
    int found = leader_epoch == (int32_t)leader_epoch && header_at(&data, 0, &header);
    if (found) patch_batch(&data, base_offset, leader_epoch);
    PyBuffer_Release(&data);
    if (!found) Py_RETURN_NONE;
    return info_object(args[0], &header, base_offset, position);
}

/* sound_batches(BatchHeader, data, pos) */
static PyObject *py_sound_batches(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    int64_t pos;
    Py_buffer data;
    Header header;
    if (!has_arguments(count, 3) || !as_int64(args[2], &pos) || !begin_read(args[1], &data)) return NULL;
    PyObject *found = PyList_New(0);
    while (found != NULL && header_at(&data, pos, &header) && is_sound(&data, pos, &header)) {
        if (header.last_offset_delta < 0) break;
        PyObject *object = header_object(args[0], &header);
        if (object == NULL || PyList_Append(found, object) < 0) {
            Py_DECREF(found);
            found = NULL;
        }
        Py_XDECREF(object);
        pos += (int64_t)header.length + LOG_OVERHEAD;
    }
    PyBuffer_Release(&data);
    return found;
}

/* fetched_run((Run, BatchInfo), data, next_offset, segment_bytes) */
static PyObject *py_fetched_run(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    int64_t next_offset, segment_bytes;
    Py_buffer data;
    if (!has_arguments(count, 4) || !has_items(args[0], FETCHED_TYPES) || !as_int64(args[2], &next_offset)) return NULL;
    if (!as_int64(args[3], &segment_bytes) || !begin_read(args[1], &data)) return NULL;
    PyObject *run = data.len > GIL_BYTES_MAX ? NULL : fetched_run(args[0], args[1], &data, next_offset, segment_bytes);
    PyBuffer_Release(&data);
    return answer_or_none(run);
}

/* count_records(data, expected) */
static PyObject *py_count_records(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    int64_t expected, steps = 0;
    Py_buffer data;
    if (!has_arguments(count, 2) || !as_int64(args[1], &expected) || !begin_read(args[0], &data)) return NULL;
    Cursor records = {data.buf, 0, data.len};
    int sound = count_records(records, expected, &steps);
    PyBuffer_Release(&data);
    return PyLong_FromLongLong(sound ? steps : -1);
}

/* walk_records(data, expected) */
static PyObject *py_walk_records(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    int64_t expected;
    Py_buffer data;
    if (!has_arguments(count, 2) || !as_int64(args[1], &expected) || !begin_read(args[0], &data)) return NULL;
    Cursor records = {data.buf, 0, data.len};
    Span span = {INT64_MAX, -INT64_MAX, 0, 0};
    int sound = walk_records(records, expected, &span);
    PyBuffer_Release(&data);
    if (!sound) Py_RETURN_NONE;
    return Py_BuildValue("(LLLL)", (long long)span.low, (long long)span.high, (long long)span.keyless, (long long)span.steps);
}

/* record_spans(data, count): for batches of up to a megabyte, since the twin makes one at a time */
static PyObject *py_record_spans(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    int64_t expected;
    Py_buffer data;
    if (!has_arguments(count, 2) || !as_int64(args[1], &expected) || !begin_read(args[0], &data)) return NULL;
    Cursor records = {data.buf, 0, data.len};
    PyObject *found = data.len > LISTED_BYTES_MAX ? NULL : list_records(records, expected, span_object, NULL);
    PyBuffer_Release(&data);
    return found_or_none(found);
}

/* records(Record, data, count, base_offset, base_timestamp, keeps_timestamp) */
static PyObject *py_records(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    int64_t expected, fixed;
    Py_buffer data;
    RecordTerms terms;
    if (!has_arguments(count, 6) || !as_int64(args[2], &expected) || !as_int64(args[3], &terms.base_offset)) return NULL;
    if (!as_int64(args[4], &terms.base_timestamp) || !as_int64(args[5], &fixed)) return NULL;
    if (!begin_read(args[1], &data)) return NULL;
    terms.type = args[0];
    terms.is_append_time = (int)fixed;
    Cursor records = {data.buf, 0, data.len};
    PyObject *found = data.len > LISTED_BYTES_MAX ? NULL : list_records(records, expected, record_object, &terms);
    PyBuffer_Release(&data);
    return found_or_none(found);
}

/* find_records(data, ends, counts, base_offsets, base_times, append_times, and eight arrays for what is found) */
static PyObject *py_find_records(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Arrays arrays;
    if (!has_arguments(count, AT_FOUND + 6) || !begin_arrays(&arrays, args, count, AT_OFFSETS)) return NULL;
    int fits = have_room(&arrays, AT_COUNTS, AT_APPEND_TIMES, length_of(&arrays, AT_ENDS));
    fits = fits && have_room(&arrays, AT_TIMES, AT_FOUND + 5, length_of(&arrays, AT_OFFSETS));
    int64_t bad = fits ? find_records(&arrays) : 0;
    release_arrays(&arrays);
    return PyLong_FromLongLong(bad);
}

/* find_headers(data, headers_at, header_count, key_at, key_size, value_at, value_size) */
static PyObject *py_find_headers(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Arrays arrays;
    if (!has_arguments(count, 7) || !begin_arrays(&arrays, args, count, 3)) return NULL;
    int fits = have_room(&arrays, 2, 2, length_of(&arrays, 1)) && have_room(&arrays, 4, 6, length_of(&arrays, 3));
    int found = fits && find_headers(&arrays);
    release_arrays(&arrays);
    return PyBool_FromLong(found);
}

/* gather_pieces(data, at, size, out, out_offsets) */
static PyObject *py_gather_pieces(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Arrays arrays;
    if (!has_arguments(count, 5) || !begin_arrays(&arrays, args, count, 3)) return NULL;
    int found = gather_pieces(&arrays);
    release_arrays(&arrays);
    return PyBool_FromLong(found);
}

/* make_decoder(layout) */
static PyObject *py_make_decoder(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (!has_arguments(count, 1)) return NULL;
    Layout *layout = make_layout(args[0]);
    return layout == NULL ? NULL : PyCapsule_New(layout, LAYOUT, free_capsule);
}

/* decode(decoder, uuid_of, data, pos, steps) */
static PyObject *py_decode(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Py_buffer data;
    Reader reader;
    if (!has_arguments(count, 5) || !as_int64(args[3], &reader.pos) || !as_int64(args[4], &reader.steps)) return NULL;
    const Layout *layout = PyCapsule_GetPointer(args[0], LAYOUT);
    if (layout == NULL || !begin_read(args[2], &data)) return NULL;
    reader.uuid_of = args[1];
    reader.buffer = args[2];
    reader.data = data.buf;
    reader.end = data.len;
    PyObject *message = reader.pos >= 0 && reader.pos <= reader.end ? read_struct(&reader, layout) : NULL;
    PyBuffer_Release(&data);
    if (message != NULL) return Py_BuildValue("(NL)", message, (long long)reader.pos);
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) return NULL;
    PyErr_Clear();
    Py_RETURN_NONE;
}

/* request_header(RequestHeader, header_versions, frame) */
static PyObject *py_request_header(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Py_buffer versions, frame;
    if (!has_arguments(count, 3) || !begin_read(args[1], &versions)) return NULL;
    if (!begin_read(args[2], &frame)) {
        PyBuffer_Release(&versions);
        return NULL;
    }
    PyObject *header = request_header(args[0], &versions, &frame);
    PyBuffer_Release(&frame);
    PyBuffer_Release(&versions);
    return answer_or_none(header);
}

/* survey_batches(topics) */
static PyObject *py_survey_batches(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Survey survey = {0, 0, 0};
    if (!has_arguments(count, 1)) return NULL;
    int is_usual = PyList_Check(args[0]);
    for (Py_ssize_t place = 0; is_usual && place < PyList_Size(args[0]); place++) {
        PyObject *topic = PySequence_GetItem(args[0], place);
        is_usual = topic != NULL && survey_topic(topic, &survey);
        Py_XDECREF(topic);
    }
    if (!is_usual) return answer_or_none(NULL);
    long long records = survey.records, compressed = survey.compressed, transactional = survey.transactional;
    return Py_BuildValue("(LLL)", records, compressed, transactional);
}

/* produce_response(topics, outcomes, AppendResult, correlation_id, version) */
static PyObject *py_produce_response(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    int64_t correlation_id, version;
    if (!has_arguments(count, 5) || !as_int64(args[3], &correlation_id) || !as_int64(args[4], &version)) return NULL;
    if (!PyList_Check(args[0]) || !PyList_Check(args[1]) || version < 0 || version > LAST_PRODUCE_VERSION) Py_RETURN_NONE;
    Writer out = {PyMem_Malloc(256), 0, 256};
    if (out.data == NULL) return PyErr_NoMemory();
    int whole = put_produce_response(&out, args[0], args[1], args[2], correlation_id, (int)version);
    PyObject *frame = whole ? PyBytes_FromStringAndSize((const char *)out.data, (Py_ssize_t)out.size) : NULL;
    PyMem_Free(out.data);
    return answer_or_none(frame);
}

/* fetch_response(outcomes, records, session_id, correlation_id, version, is_committed) */
static PyObject *py_fetch_response(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    int64_t session_id, correlation_id, version, is_committed;
    if (!has_arguments(count, 6) || !as_int64(args[2], &session_id) || !as_int64(args[3], &correlation_id)) return NULL;
    if (!as_int64(args[4], &version) || !as_int64(args[5], &is_committed)) return NULL;
    if (!PyList_Check(args[0]) || !PyList_Check(args[1]) || PyList_Size(args[0]) != PyList_Size(args[1])) Py_RETURN_NONE;
    if (version < FIRST_FLEXIBLE_FETCH || version > LAST_FETCH_VERSION) Py_RETURN_NONE;
    Writer out = {PyMem_Malloc(256), 0, 256};
    if (out.data == NULL) return PyErr_NoMemory();
    int whole = put_fetch_response(&out, args[0], args[1], session_id, correlation_id, (int)version, (int)is_committed);
    PyObject *frame = whole ? PyBytes_FromStringAndSize((const char *)out.data, (Py_ssize_t)out.size) : NULL;
    PyMem_Free(out.data);
    return answer_or_none(frame);
}

/* encode(encoder, (UUID, FileSlice, SharedList), message, bytes, splices): whether it was done */
static PyObject *py_encode(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    if (!has_arguments(count, 5) || !has_items(args[1], ENCODED_TYPES)) return NULL;
    const Layout *layout = PyCapsule_GetPointer(args[0], LAYOUT);
    if (layout == NULL) return NULL;
    if (!PyByteArray_Check(args[3]) || !PyList_Check(args[4])) Py_RETURN_FALSE;
    Encoder encoder = {.splices = args[4]};
    encoder.uuid_type = PyTuple_GetItem(args[1], 0);
    encoder.slice_type = PyTuple_GetItem(args[1], 1);
    encoder.shared_type = PyTuple_GetItem(args[1], 2);
    Py_ssize_t splices = PyList_Size(args[4]);
    if (encode_message(&encoder, layout, args[2], args[3])) Py_RETURN_TRUE;
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_MemoryError)) return NULL;
    PyErr_Clear();
    if (PyList_SetSlice(args[4], splices, PyList_Size(args[4]), NULL) < 0) return NULL;
    Py_RETURN_FALSE;
}

#define FUNCTION(name) {#name, (PyCFunction)(void (*)(void))py_##name, METH_FASTCALL, NULL}

static PyMethodDef functions[] = {
    FUNCTION(checksum),      FUNCTION(read_header),   FUNCTION(check_batch),  FUNCTION(place_batch),
    FUNCTION(sound_batches), FUNCTION(count_records), FUNCTION(walk_records),
    FUNCTION(record_spans),  FUNCTION(records),       FUNCTION(make_decoder), FUNCTION(decode),
    FUNCTION(request_header), FUNCTION(survey_batches), FUNCTION(produce_response),
    FUNCTION(flat_batches),  FUNCTION(place_next),    FUNCTION(fetch_response), FUNCTION(new_buffer),
    FUNCTION(keep_freed_memory), FUNCTION(find_records), FUNCTION(find_headers), FUNCTION(gather_pieces),
    FUNCTION(encode),        FUNCTION(fetched_run),
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_inner_loop", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__inner_loop(void) {
    if (!HAS_CRC32C_INSTRUCTION()) {
        PyErr_SetString(PyExc_ImportError, "this processor has no CRC-32C instruction that is known here");
        return NULL;
    }
    make_shift(&long_shift, LONG_LANE);
    make_shift(&short_shift, SHORT_LANE);
    new_tuple = (newfunc)PyType_GetSlot(&PyTuple_Type, Py_tp_new);
    new_object = (newfunc)PyType_GetSlot(&PyBaseObject_Type, Py_tp_new);
    set_slot = (descrsetfunc)PyType_GetSlot(&PyMemberDescr_Type, Py_tp_descr_set);
    get_slot = (descrgetfunc)PyType_GetSlot(&PyMemberDescr_Type, Py_tp_descr_get);
    no_arguments = PyTuple_New(0);
    if (!intern_names() || !intern_fetch_names() || !intern_encoder_names()) return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module != NULL && PyModule_AddIntConstant(module, "INTERFACE", INTERFACE) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
