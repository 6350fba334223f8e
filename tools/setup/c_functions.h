// The C functions that compiled code calls in place of the functions of kproto.wire.c_functions.
//
// mypyc_build.py registers them with mypyc. The slots of an object follow its header in memory, each
// with the size of a pointer; kproto.wire.c_functions.has_slots checks the slots of a class.

#ifndef KPROTO_C_FUNCTIONS_H
#define KPROTO_C_FUNCTIONS_H

#include <Python.h>
#include <stdint.h>
#include <string.h>

static inline PyObject **kproto_slot(PyObject *made, int64_t index) {
    return (PyObject **)((char *)made + sizeof(PyObject)) + index;
}

static inline PyObject *kproto_new_object(PyObject *cls) {
    return ((PyTypeObject *)cls)->tp_alloc((PyTypeObject *)cls, 0);
}

// The garbage collector does not track the new object; its slots are not set.
static inline PyObject *kproto_new_untracked(PyObject *cls) {
    PyTypeObject *type = (PyTypeObject *)cls;
    PyObject *made = PyObject_GC_New(PyObject, type);
    if (made != NULL) {
        memset((char *)made + sizeof(PyObject), 0, type->tp_basicsize - sizeof(PyObject));
    }
    return made;
}

// Sets an attribute of an object. If the garbage collector does not track the object, but visits
// `value`, it tracks the object from now on, because `value` may refer to it.
static int kproto_set_and_track(PyObject *made, PyObject *name, PyObject *value) {
    if (value != NULL && PyObject_IS_GC(value) && !PyObject_GC_IsTracked(made)) {
        PyObject_GC_Track(made);
    }
    return PyObject_GenericSetAttr(made, name, value);
}

// Returns 1, mypyc's None.
static inline char kproto_track_when_set(PyObject *cls) {
    ((PyTypeObject *)cls)->tp_setattro = kproto_set_and_track;
    PyType_Modified((PyTypeObject *)cls);  // Python has cached how it sets attributes of the class
    return 1;
}

// Takes over the reference to `value`. Returns 1, mypyc's None.
static inline char kproto_set_slot(PyObject *made, PyObject *name, int64_t index, PyObject *value) {
    PyObject **slot = kproto_slot(made, index);
    PyObject *old = *slot;
    *slot = value;
    Py_XDECREF(old);
    return 1;
}

static inline PyObject *kproto_get_slot(PyObject *made, PyObject *cls, PyObject *name,
                                        int64_t index) {
    if (Py_TYPE(made) == (PyTypeObject *)cls) {
        PyObject *value = *kproto_slot(made, index);
        if (value != NULL) {
            Py_INCREF(value);
            return value;
        }
    }
    return PyObject_GetAttr(made, name);
}

// kproto_crc_tables[n][byte] is what a byte adds to the CRC-32C, n bytes before the last one.
static uint32_t kproto_crc_tables[8][256];

static inline void kproto_make_crc_tables(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78 : 0);
        }
        kproto_crc_tables[0][byte] = crc;
    }
    for (int n = 1; n < 8; n++) {
        for (int byte = 0; byte < 256; byte++) {
            uint32_t crc = kproto_crc_tables[n - 1][byte];
            kproto_crc_tables[n][byte] = crc >> 8 ^ kproto_crc_tables[0][crc & 255];
        }
    }
}

static inline uint32_t kproto_crc_by_tables(const unsigned char *at, int64_t size, uint32_t crc) {
    uint32_t(*tables)[256] = kproto_crc_tables;
    if (tables[0][1] == 0) {
        kproto_make_crc_tables();
    }
    for (; size >= 8; size -= 8, at += 8) {
        crc ^= at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        crc = tables[7][crc & 255] ^ tables[6][crc >> 8 & 255] ^ tables[5][crc >> 16 & 255] ^
              tables[4][crc >> 24] ^ tables[3][at[4]] ^ tables[2][at[5]] ^ tables[1][at[6]] ^
              tables[0][at[7]];
    }
    for (; size > 0; size--, at++) {
        crc = crc >> 8 ^ tables[0][(crc ^ *at) & 255];
    }
    return crc;
}

#if defined(__x86_64__) && defined(__GNUC__)
// The instruction of SSE 4.2.
__attribute__((target("sse4.2"))) static uint32_t kproto_crc_by_instruction(
    const unsigned char *at, int64_t size, uint32_t crc) {
    uint64_t wide = crc;
    for (; size >= 8; size -= 8, at += 8) {
        uint64_t eight;
        memcpy(&eight, at, 8);
        wide = __builtin_ia32_crc32di(wide, eight);
    }
    crc = (uint32_t)wide;
    for (; size > 0; size--, at++) {
        crc = __builtin_ia32_crc32qi(crc, *at);
    }
    return crc;
}
#endif

static inline int64_t kproto_crc32c_of(PyObject *data, int64_t crc) {
    const unsigned char *at = (const unsigned char *)PyBytes_AS_STRING(data);
    uint32_t inverted = ~(uint32_t)crc;
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("sse4.2")) {
        return (uint32_t)~kproto_crc_by_instruction(at, PyBytes_GET_SIZE(data), inverted);
    }
#endif
    return (uint32_t)~kproto_crc_by_tables(at, PyBytes_GET_SIZE(data), inverted);
}

// Returns a list of the `count` values of int32 at data[pos].
static inline PyObject *kproto_int32s_at(PyObject *data, int64_t pos, int64_t count) {
    if (pos < 0 || count < 0 || count > (PyBytes_GET_SIZE(data) - pos) / 4) {
        PyErr_SetString(PyExc_IndexError, "index out of range");
        return NULL;
    }
    const unsigned char *at = (const unsigned char *)PyBytes_AS_STRING(data) + pos;
    PyObject *numbers = PyList_New(count);
    if (numbers == NULL) {
        return NULL;
    }
    for (int64_t i = 0; i < count; i++, at += 4) {
        uint32_t bits = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
        PyObject *number = PyLong_FromLong((int32_t)bits);
        if (number == NULL) {
            Py_DECREF(numbers);
            return NULL;
        }
        PyList_SET_ITEM(numbers, i, number);
    }
    PyObject_GC_UnTrack(numbers);  // a list of numbers is in no reference cycle
    return numbers;
}

// Returns the bytes of a compact array of fewer than 127 int32; None if `numbers` is no such list.
static inline PyObject *kproto_compact_int32s(PyObject *numbers) {
    if (!PyList_CheckExact(numbers) || PyList_GET_SIZE(numbers) > 126) {
        Py_RETURN_NONE;
    }
    unsigned char encoded[1 + 4 * 126], *at = encoded + 1;
    Py_ssize_t count = PyList_GET_SIZE(numbers);
    encoded[0] = (unsigned char)(count + 1);
    for (Py_ssize_t i = 0; i < count; i++, at += 4) {
        int overflow;
        PyObject *number = PyList_GET_ITEM(numbers, i);
        long value = PyLong_CheckExact(number) ? PyLong_AsLongAndOverflow(number, &overflow) : 0;
        if (!PyLong_CheckExact(number) || overflow || value > INT32_MAX || value < INT32_MIN) {
            Py_RETURN_NONE;
        }
        at[0] = (unsigned char)(value >> 24);
        at[1] = (unsigned char)(value >> 16);
        at[2] = (unsigned char)(value >> 8);
        at[3] = (unsigned char)value;
    }
    return PyBytes_FromStringAndSize((const char *)encoded, at - encoded);
}

// Reads a varint of up to 3 bytes; returns 0 if it is longer or ends after `end`.
static inline int kproto_varint(const unsigned char *data, int64_t *pos, int64_t end, int64_t *value) {
    int64_t read = 0;
    for (int shift = 0; shift < 21 && *pos < end; shift += 7) {
        unsigned char byte = data[(*pos)++];
        read |= (int64_t)(byte & 127) << shift;
        if (byte < 128) {
            *value = read;
            return 1;
        }
    }
    return 0;
}

// Returns the name in the `size` bytes of `at`: the same object as at the last call, if its header
// had the same number and the same name.
static inline PyObject *kproto_header_name(const char *at, int64_t size, int64_t number,
                                           PyObject *names) {
    if (number < PyList_GET_SIZE(names)) {
        PyObject *name = PyList_GET_ITEM(names, number);
        if (PyUnicode_IS_COMPACT_ASCII(name) && PyUnicode_GET_LENGTH(name) == size &&
            memcmp(PyUnicode_1BYTE_DATA(name), at, size) == 0) {
            Py_INCREF(name);
            return name;
        }
    }
    PyObject *name = PyUnicode_DecodeUTF8(at, size, "surrogateescape");
    if (name == NULL || size > 128) {
        return name;
    }
    if (number < PyList_GET_SIZE(names)) {
        Py_INCREF(name);
        PyList_SetItem(names, number, name);
    } else if (number < 64 && PyList_Append(names, name) < 0) {
        Py_DECREF(name);
        return NULL;
    }
    return name;
}

// Returns the list of the headers in block[pos:end], or None if a header is corrupt or very long.
static inline PyObject *kproto_headers_in(PyObject *block, int64_t pos, int64_t end,
                                          PyObject *names) {
    const unsigned char *data = (const unsigned char *)PyBytes_AS_STRING(block);
    int64_t count, size;
    if (pos < 0 || end > PyBytes_GET_SIZE(block) || !kproto_varint(data, &pos, end, &count) ||
        count & 1 || count > end - pos) {
        Py_RETURN_NONE;
    }
    count >>= 1;
    PyObject *headers = PyList_New(count);
    if (headers == NULL) {
        return NULL;
    }
    for (int64_t number = 0; number < count; number++) {
        PyObject *name = NULL, *value, *header;
        if (!kproto_varint(data, &pos, end, &size) || size & 1 || (size >>= 1) > end - pos) {
            goto corrupt;
        }
        name = kproto_header_name((const char *)data + pos, size, number, names);
        if (name == NULL) {
            goto failed;
        }
        pos += size;
        if (!kproto_varint(data, &pos, end, &size) || (!(size & 1) && size >> 1 > end - pos)) {
            Py_DECREF(name);
            goto corrupt;
        }
        if (size & 1) {  // any negative length means null
            value = Py_NewRef(Py_None);
        } else {
            size >>= 1;
            value = PyBytes_FromStringAndSize((const char *)data + pos, size);
            pos += size;
        }
        header = value == NULL ? NULL : PyTuple_New(2);
        if (header == NULL) {
            Py_XDECREF(value);
            Py_DECREF(name);
            goto failed;
        }
        PyTuple_SET_ITEM(header, 0, name);
        PyTuple_SET_ITEM(header, 1, value);
        PyObject_GC_UnTrack(header);  // as the garbage collector does, for a str and bytes or None
        PyList_SET_ITEM(headers, number, header);
    }
    if (pos == end) {
        return headers;
    }
corrupt:
    Py_DECREF(headers);
    Py_RETURN_NONE;
failed:
    Py_DECREF(headers);
    return NULL;
}

// What a list descriptor needs to know; lives as long as the class, so it is never freed.
typedef struct {
    PyGetSetDef definition;
    int64_t index;
    PyObject *property;  // the property in Python that the descriptor replaces
    PyObject *names;  // the latest names of headers if the list has the headers of a record, or None
} kproto_list_attribute;

static PyObject *kproto_get_list(PyObject *made, void *closure) {
    kproto_list_attribute *attribute = closure;
    PyObject **slot = kproto_slot(made, attribute->index);
    PyObject *value = *slot;
    if (value != NULL && PyList_CheckExact(value)) {
        Py_INCREF(value);
        return value;
    }
    if (value != NULL && PyBytes_CheckExact(value) && PyList_Check(attribute->names)) {
        Py_INCREF(value);  // the garbage collector may run code that sets the slot
        PyObject *headers =
            kproto_headers_in(value, 0, PyBytes_GET_SIZE(value), attribute->names);
        Py_DECREF(value);
        if (headers == NULL) {
            return NULL;
        }
        if (headers != Py_None) {
            Py_INCREF(headers);
            kproto_set_slot(made, NULL, attribute->index, headers);
            return headers;
        }
        Py_DECREF(headers);
    }
    PyObject *property = attribute->property;
    return Py_TYPE(property)->tp_descr_get(property, made, (PyObject *)Py_TYPE(made));
}

static int kproto_set_list(PyObject *made, PyObject *value, void *closure) {
    PyObject *property = ((kproto_list_attribute *)closure)->property;
    return Py_TYPE(property)->tp_descr_set(property, made, value);
}

static inline PyObject *kproto_list_descriptor(PyObject *cls, PyObject *name, int64_t index,
                                               PyObject *names) {
    PyObject *property = PyObject_GetAttr(cls, name);
    if (property == NULL) {
        return NULL;
    }
    if (!Py_IS_TYPE(property, &PyProperty_Type)) {
        PyErr_SetString(PyExc_TypeError, "the attribute is no property");
        Py_DECREF(property);
        return NULL;
    }
    kproto_list_attribute *attribute = PyMem_Calloc(1, sizeof(kproto_list_attribute));
    if (attribute == NULL) {
        Py_DECREF(property);
        return PyErr_NoMemory();
    }
    PyObject *doc = PyObject_GetAttrString(property, "__doc__");
    if (doc == NULL) {
        PyErr_Clear();
    }
    // `name` is a constant of the calling module, and the property keeps its text.
    attribute->definition.name = PyUnicode_AsUTF8(name);
    attribute->definition.doc = doc != NULL && PyUnicode_Check(doc) ? PyUnicode_AsUTF8(doc) : NULL;
    attribute->definition.get = kproto_get_list;
    attribute->definition.set = kproto_set_list;
    attribute->definition.closure = attribute;
    attribute->index = index;
    attribute->property = property;
    attribute->names = Py_NewRef(names);
    return PyDescr_NewGetSet((PyTypeObject *)cls, &attribute->definition);
}

#endif
