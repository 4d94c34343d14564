"""What MkDocs calls: runs pages and examples, and adds their figures and the gallery to the site.

It stands beside mkdocs.yml because MkDocs imports hooks from the folder they are in.
"""

import logging
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import matplotlib
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from docs_build import gallery
from docs_build.cache import Cache
from docs_build.gallery import Example, FormatError, read_example
from docs_build.pages import figures, snippets
from docs_build.runs import Block, Run

INDEX = "gallery/index.md"
log = logging.getLogger("mkdocs.hooks.hylift")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Gives each example an entry of the navigation, below that of the gallery."""
    entries = [{one.title: f"gallery/{one.name}.md"} for one in _examples(config)]
    config.nav = [
        {name: [INDEX, *entries]} if target == INDEX else {name: target}
        for entry in config.nav or []
        for name, target in entry.items()
    ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the figures of pages, and the pages of the gallery with theirs."""
    matplotlib.use("agg")  # no windows
    cache = Cache(_root(config) / ".cache" / "docs")
    makers: dict[str, Path] = {}
    for maker, file in [*_figures(files, config, cache), *_gallery(config, cache)]:
        if file.src_uri in makers:
            raise PluginError(
                f"{file.src_uri} is made by {makers[file.src_uri]} and by {maker}: rename one"
            )
        makers[file.src_uri] = maker
        files.append(file)
    cache.drop_others()
    return files


def _figures(files: Files, config: MkDocsConfig, cache: Cache) -> Iterator[tuple[Path, File]]:
    """What pages show and their own blocks have drawn, with the page."""
    for page in files.documentation_pages():
        text = page.content_string
        kept = files.get_file_from_path
        wanted = [name for name in figures(text) if kept(f"images/{name}") is None]
        if wanted:
            path = Path("docs", page.src_uri)
            result = _run(config, cache, snippets(text), path, wanted)
            for name in wanted:
                yield path, _picture(config, name, result)


def _gallery(config: MkDocsConfig, cache: Cache) -> Iterator[tuple[Path, File]]:
    """Pages, scripts and pictures of examples, and the page that leads to them."""
    examples = _examples(config)
    for one in examples:
        path = Path("examples", one.path.name)
        result = _run(config, cache, one.blocks, path, [one.picture])
        yield path, _picture(config, one.picture, result)
        script = one.path.read_text(encoding="utf-8")
        contents = {f"{one.name}.md": gallery.page(one, result), one.path.name: script}
        for name, content in contents.items():
            yield path, File.generated(config, f"gallery/{name}", content=content)
    yield Path("examples"), File.generated(config, INDEX, content=gallery.index(examples))


def _root(config: MkDocsConfig) -> Path:
    """The folder of mkdocs.yml."""
    return Path(config.config_file_path).parent


def _examples(config: MkDocsConfig) -> list[Example]:
    try:
        return [read_example(path) for path in sorted(_root(config).glob("examples/*.py"))]
    except FormatError as error:
        raise PluginError(f"examples: {error}") from error


def _run(
    config: MkDocsConfig, cache: Cache, blocks: list[Block], name: Path, wanted: list[str]
) -> Run:
    """What the blocks did; raises where they fail, or have not drawn what is shown."""
    begun = time.perf_counter()
    try:
        result, is_new = cache.run(blocks, _root(config) / name)
    except Exception as error:
        log.error(traceback.format_exc())
        raise PluginError(f"{name} does not run: {error}") from error
    for picture in wanted:
        if picture not in result.pictures:
            raise PluginError(
                f"{name} shows images/{picture}, but its code does not write {picture}"
            )
    took = f"{time.perf_counter() - begun:.1f} s" if is_new else "not run again: nothing changed"
    log.info(f"{name}: {', '.join(wanted)} ({took})")
    return result


def _picture(config: MkDocsConfig, name: str, result: Run) -> File:
    return File.generated(config, f"images/{name}", content=result.pictures[name])
