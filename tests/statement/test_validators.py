"""The JSON-LD exports pass the validators of other packages."""

from __future__ import annotations

import io
import json
from collections import Counter

import pytest

from benchmarks import forgeries
from espalier.core.release import release
from espalier.core.statement.catalogues import EXPORTS

pytestmark = pytest.mark.filterwarnings("ignore")  # warnings of the validators

DCAT_AP = """
@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix dcat: <http://www.w3.org/ns/dcat#> .
@prefix dct: <http://purl.org/dc/terms/> .
@prefix foaf: <http://xmlns.com/foaf/0.1/> .
@prefix spdx: <http://spdx.org/rdf/terms#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .

[] a sh:NodeShape ; sh:targetClass dcat:Dataset ;
   sh:property [ sh:path dct:title ; sh:minCount 1 ; sh:nodeKind sh:Literal ] ,
     [ sh:path dct:description ; sh:minCount 1 ; sh:nodeKind sh:Literal ] ,
     [ sh:path dct:publisher ; sh:maxCount 1 ; sh:node [ sh:property [ sh:path foaf:name ; sh:minCount 1 ] ] ] ,
     [ sh:path dct:accessRights ; sh:maxCount 1 ; sh:nodeKind sh:IRI ] ,
     [ sh:path dct:issued ; sh:maxCount 1 ; sh:datatype xsd:date ] ,
     [ sh:path dcat:distribution ; sh:minCount 1 ; sh:class dcat:Distribution ] .
[] a sh:NodeShape ; sh:targetClass dcat:Distribution ;
   sh:property [ sh:path dcat:accessURL ; sh:minCount 1 ; sh:nodeKind sh:IRI ] ,
     [ sh:path dcat:byteSize ; sh:maxCount 1 ; sh:datatype xsd:nonNegativeInteger ] ,
     [ sh:path dct:format ; sh:maxCount 1 ; sh:nodeKind sh:IRI ] ,
     [ sh:path spdx:checksum ; sh:maxCount 1 ; sh:node [
         sh:property [ sh:path spdx:algorithm ; sh:minCount 1 ; sh:maxCount 1 ] ,
           [ sh:path spdx:checksumValue ; sh:minCount 1 ; sh:maxCount 1 ; sh:datatype xsd:hexBinary ] ] ] .
"""
"""Shapes of DCAT-AP 3 for the properties of the export: which are mandatory, which occur at most once, their types."""


@pytest.fixture(scope="module")
def made():
    return release(forgeries.Case("privci", 2, None, None).project(), forgeries.table(2, 400))


def statement(made):
    return json.loads(made.files["statement.json"])


def graph(made, name):
    rdflib = pytest.importorskip("rdflib", reason="rdflib is not installed (requirements-dev.txt)")
    return rdflib.Graph().parse(data=json.dumps(EXPORTS[name](statement(made))), format="json-ld")


def test_the_dcat_export_keeps_the_shapes_of_dcat_ap(made):
    pyshacl = pytest.importorskip("pyshacl", reason="pyshacl is not installed (requirements-dev.txt)")
    found = graph(made, "dcat")
    good, _, said = pyshacl.validate(found, shacl_graph=DCAT_AP, shacl_graph_format="turtle")
    assert good, said
    rdflib = pytest.importorskip("rdflib")
    found.remove((None, rdflib.URIRef("http://purl.org/dc/terms/title"), None))
    assert not pyshacl.validate(found, shacl_graph=DCAT_AP, shacl_graph_format="turtle")[0]


def test_every_key_of_an_export_is_a_property(made):
    """Readers of JSON-LD silently leave out a key that its context does not know."""
    for name in ("dcat", "dpv"):
        found = graph(made, name)
        keys = {key for key in EXPORTS[name](statement(made)) if not key.startswith("@")}
        subject = EXPORTS[name](statement(made))["@id"]
        properties = {str(p) for s, p, _ in found if str(s) == subject}
        assert len(properties - {"http://www.w3.org/1999/02/22-rdf-syntax-ns#type"}) == len(keys)


def test_the_croissant_card_is_valid(made, tmp_path):
    mlcroissant = pytest.importorskip("mlcroissant", reason="mlcroissant is not installed (requirements-dev.txt)")
    forgeries.written({n: made.files[n] for n in ("croissant.json", "synthetic.csv")}, tmp_path)
    found = mlcroissant.Dataset(jsonld=tmp_path / "croissant.json")
    assert not found.metadata.ctx.issues.errors
    first = next(iter(found.records(record_set="rows")))
    assert {key.removeprefix("rows/") for key in first} == {c.name for c in made.project.schema.columns}


def test_the_spdx_export_has_the_properties_and_values_of_spdx_3(made):
    spdx = pytest.importorskip("spdx_python_model", reason="spdx-python-model is not installed (requirements-dev.txt)")

    def read(exported):
        found = spdx.v3_0_1.SHACLObjectSet()
        spdx.v3_0_1.JSONLDDeserializer().read(io.BytesIO(json.dumps(exported).encode()), found)
        spdx.v3_0_1.JSONLDSerializer().write(found, io.BytesIO())  # checks that no mandatory property is missing
        assert not found.missing_ids
        return found

    exported = EXPORTS["spdx"](statement(made))
    kinds = Counter(type(each).__name__ for each in read(exported).foreach())
    assert kinds["dataset_DatasetPackage"] == 1
    assert kinds["software_File"] == len(statement(made)["files"])
    package = next(each for each in exported["@graph"] if each["type"] == "dataset_DatasetPackage")
    for key, value in {
        "dataset_datasetType": ["a table"],
        "dataset_datasetAvailability": "somewhere",
        "rows": 4,
    }.items():
        other = [each | {key: value} if each is package else each for each in exported["@graph"]]
        with pytest.raises((ValueError, KeyError, AttributeError, TypeError)):
            read(exported | {"@graph": other})
    other = [{k: v for k, v in each.items() if k != "relationshipType"} for each in exported["@graph"]]
    with pytest.raises(ValueError, match="relationshipType"):
        read(exported | {"@graph": other})
