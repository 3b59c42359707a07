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
    if not files.exists(at):
        return None
    stream = files.open(at)
    try:
        return bytes(stream.readAllBytes()).decode()
    finally:
        stream.close()


def write_text_atomically(spark: SparkSession, path: str, text: str) -> None:
    """Whoever reads it finds the old text or the new one."""
    files, at = _of(spark, path)
    beside = at.suffix(".new")
    stream = files.create(beside, True)
    try:
        stream.write(bytearray(text.encode()))
    finally:
        stream.close()
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
    return sorted(str(found.getPath().getName()) for found in files.listStatus(at))


def delete(spark: SparkSession, path: str) -> None:
    """The file, or the folder and all in it; nothing where there is none."""
    files, at = _of(spark, path)
    files.delete(at, True)


def _of(spark: SparkSession, path: str) -> tuple[Any, Any]:
    jvm: Any = spark._jvm
    at = jvm.org.apache.hadoop.fs.Path(path)
    return at.getFileSystem(_configuration(spark)), at


def _configuration(spark: SparkSession) -> Any:
    java: Any = spark._jsc
    return java.hadoopConfiguration()
