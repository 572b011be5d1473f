"""Reads what the stand-in driver counted in this process."""

import ctypes

REPORT_BYTES = 1 << 16


class DriverInfo(ctypes.Structure):
    """SimDriverInfo of platform/simdriver/sim_driver_info.h."""

    _fields_ = [("bytes", ctypes.c_uint64), ("phantom_memory", ctypes.c_uint64),
                ("unimplemented_calls", ctypes.c_uint64), ("skipped_kernels", ctypes.c_uint64),
                ("last_unimplemented", ctypes.c_char_p), ("host_reads", ctypes.c_uint64),
                ("written_host_reads", ctypes.c_uint64)]


def host_reads(driver=None):
    """Numbers of copies from the device to the host, and places of those of unknown bytes.

    Empty with the driver of a GPU.
    """
    try:
        driver = driver or ctypes.CDLL("libcuda.so.1")
        info = DriverInfo(bytes=ctypes.sizeof(DriverInfo))
        if driver.cuStrataSimDriverInfo(ctypes.byref(info)) != 0:
            return {}
        text = ctypes.create_string_buffer(REPORT_BYTES)
        driver.cuStrataSimReport(text, ctypes.c_uint64(REPORT_BYTES))
    except (OSError, AttributeError):
        return {}
    places = [line.strip() for line in text.value.decode(errors="replace").splitlines()
              if line.startswith(" ")]
    return {"host_reads": info.host_reads, "written_host_reads": info.written_host_reads,
            "host_read_places": places}
