"""Small files and folders beside the tables, wherever Spark can read: a local folder or any URL that Hadoop knows."""

from typing import Any

from pyspark.sql import SparkSession


def exists(spark: SparkSession, path: str) -> bool:
    """Whether there is a file or folder."""
    files, at = _of(spark, path)
    return bool(files.exists(at))


def read_text(spark: SparkSession, path: str) -> str | None:
    """The file's text, None where there is none."""
    files, at = _of(spark, path)
    files = _unchecked(files) or files
    if not files.exists(at):
        return None
    stream = files.open(at)
    try:
        return bytes(stream.readAllBytes()).decode()
    finally:
        stream.close()


def write_text_atomically(spark: SparkSession, path: str, text: str) -> None:
    """A reader finds the old text or the new one, also after a kill -9 at any point."""
    files, at = _of(spark, path)
    unchecked = _unchecked(files)
    beside = at.suffix(".new")
    stream = (unchecked or files).create(beside, True)
    try:
        stream.write(bytearray(text.encode()))
    finally:
        stream.close()
    if unchecked is not None:
        if not unchecked.rename(beside, at):
            raise OSError(f"{path} could not be replaced")
        return
    jvm: Any = spark._jvm
    rename = getattr(jvm, "org.apache.hadoop.fs.Options$Rename")
    gateway: Any = spark.sparkContext._gateway
    overwriting = gateway.new_array(rename, 1)
    overwriting[0] = rename.OVERWRITE
    context = jvm.org.apache.hadoop.fs.FileContext.getFileContext(files.getUri(), _configuration(spark))
    context.rename(beside, at, overwriting)


def names(spark: SparkSession, path: str) -> list[str]:
    """What is in the folder, by name; nothing where there is none."""
    files, at = _of(spark, path)
    if not files.exists(at):
        return []
    return sorted(str(status.getPath().getName()) for status in files.listStatus(at))


def matching(spark: SparkSession, pattern: str) -> list[str]:
    """Paths of files and folders that match, `*` for any part of a name. One call, however many there are."""
    files, at = _of(spark, pattern)
    statuses = files.globStatus(at)
    if not statuses:
        return []
    jvm: Any = spark._jvm
    gateway: Any = spark.sparkContext._gateway
    paths = gateway.new_array(jvm.Object, len(statuses))
    jvm.System.arraycopy(jvm.org.apache.hadoop.fs.FileUtil.stat2Paths(statuses), 0, paths, 0, len(statuses))
    return sorted(str(jvm.org.apache.commons.lang3.StringUtils.join(paths, "\n")).splitlines())


def size(spark: SparkSession, path: str) -> int:
    """Bytes of the file, or of all files in the folder."""
    files, at = _of(spark, path)
    return int(files.getContentSummary(at).getLength())


def changed_s(spark: SparkSession, path: str) -> float:
    """When it was written, Unix time."""
    files, at = _of(spark, path)
    return float(files.getFileStatus(at).getModificationTime()) / 1000


def delete(spark: SparkSession, path: str) -> None:
    """The file, or the folder and all in it; nothing where there is none."""
    files, at = _of(spark, path)
    files.delete(at, True)


def _of(spark: SparkSession, path: str) -> tuple[Any, Any]:
    jvm: Any = spark._jvm
    at = jvm.org.apache.hadoop.fs.Path(path)
    return at.getFileSystem(_configuration(spark)), at


def _unchecked(files: Any) -> Any:
    """A local file system without its checksums, which are files beside that cannot be replaced in the same step; None
    for any other."""
    return files.getRaw() if str(files.getScheme()) == "file" else None


def _configuration(spark: SparkSession) -> Any:
    java: Any = spark._jsc
    return java.hadoopConfiguration()
