"""Declarations of items and variables in CDISC ODM, define.xml and DDI Lifecycle."""

from __future__ import annotations

import contextlib
import time

import pytest

from espalier.core.dictionaries.base import Declared
from espalier.core.dictionaries.reading import read_dictionary
from espalier.core.errors import SchemaError


def columns(text: str) -> dict[str, Declared]:
    return {column.name: column for column in read_dictionary(text.encode(), "d.xml").columns}


DEFINE = """<ODM xmlns="http://www.cdisc.org/ns/odm/v1.3" xmlns:def="http://www.cdisc.org/ns/def/v2.0"><Study OID="s">
<MetaDataVersion OID="m" def:StandardName="SDTM-IG">
<def:ValueListDef OID="VL.1"><ItemRef ItemOID="IT.LB.RES.GLUC"/></def:ValueListDef>
<ItemGroupDef OID="IG.DM" Name="DM"><ItemRef ItemOID="IT.DM.USUBJID" Mandatory="Yes" KeySequence="1"/>
 <ItemRef ItemOID="IT.DM.SEX" Mandatory="Yes"/><ItemRef ItemOID="IT.DM.AGE"/><ItemRef ItemOID="IT.DM.RFST"/>
 <ItemRef ItemOID="IT.DM.GRADE"/><ItemRef ItemOID="IT.DM.TRTSDT"/><ItemRef ItemOID="IT.DM.BMI"/>
 <ItemRef ItemOID="IT.DM.AETERM"/><ItemRef ItemOID="IT.DM.DEATH"/><ItemRef ItemOID="IT.DM.TIME"/>
 <ItemRef ItemOID="IT.NONE"/></ItemGroupDef>
<ItemGroupDef OID="IG.LB" Name="LB"><ItemRef ItemOID="IT.LB.USUBJID" KeySequence="1"/>
 <ItemRef ItemOID="IT.LB.SEQ" KeySequence="2"/></ItemGroupDef>
<ItemDef OID="IT.DM.USUBJID" Name="USUBJID" DataType="text"><Description>
 <TranslatedText xml:lang="en">Unique Subject Identifier</TranslatedText></Description></ItemDef>
<ItemDef OID="IT.LB.USUBJID" Name="USUBJID" DataType="text"/>
<ItemDef OID="IT.LB.SEQ" Name="LBSEQ" DataType="integer"/>
<ItemDef OID="IT.LB.RES.GLUC" Name="GLUC" DataType="float"/>
<ItemDef OID="IT.DM.SEX" Name="SEX" DataType="text" def:Label="Sex"><CodeListRef CodeListOID="CL.SEX"/></ItemDef>
<ItemDef OID="IT.DM.AGE" Name="AGE" DataType="integer"><MeasurementUnitRef MeasurementUnitOID="MU.Y"/>
 <RangeCheck Comparator="GE" SoftHard="Hard"><CheckValue>18</CheckValue></RangeCheck>
 <RangeCheck Comparator="LT" SoftHard="Soft"><CheckValue>110</CheckValue></RangeCheck></ItemDef>
<ItemDef OID="IT.DM.RFST" Name="RFSTDTC" DataType="date"/>
<ItemDef OID="IT.DM.GRADE" Name="GRADE" DataType="integer"><CodeListRef CodeListOID="CL.GRADE"/></ItemDef>
<ItemDef OID="IT.DM.TRTSDT" Name="TRTSDT" DataType="integer" def:DisplayFormat="DATE9."/>
<ItemDef OID="IT.DM.BMI" Name="BMI" DataType="float" SignificantDigits="1"/>
<ItemDef OID="IT.DM.AETERM" Name="AEDECOD" DataType="text"><CodeListRef CodeListOID="CL.MEDDRA"/></ItemDef>
<ItemDef OID="IT.DM.DEATH" Name="DEATH" DataType="boolean"><Question><TranslatedText>Died?</TranslatedText></Question>
 </ItemDef>
<ItemDef OID="IT.DM.TIME" Name="DMTM" DataType="time"/>
<CodeList OID="CL.SEX" Name="Sex" DataType="text"><CodeListItem CodedValue="F"><Decode>
 <TranslatedText xml:lang="de">weiblich</TranslatedText><TranslatedText xml:lang="en">Female</TranslatedText></Decode>
 </CodeListItem><CodeListItem CodedValue="M"><Decode><TranslatedText>Male</TranslatedText></Decode></CodeListItem>
</CodeList>
<CodeList OID="CL.GRADE" DataType="integer"><EnumeratedItem CodedValue="1" Rank="1"/>
 <EnumeratedItem CodedValue="5" Rank="2"/></CodeList>
<CodeList OID="CL.MEDDRA" DataType="text"><ExternalCodeList Dictionary="MedDRA"/></CodeList>
</MetaDataVersion><BasicDefinitions><MeasurementUnit OID="MU.Y" Name="y"><Symbol><TranslatedText>years</TranslatedText>
</Symbol></MeasurementUnit></BasicDefinitions></Study></ODM>"""


def test_a_define_xml():
    read = read_dictionary(DEFINE.encode(), "define.xml")
    found = {column.name: column for column in read.columns}
    assert read.format == "define.xml"
    assert {name: column.kind for name, column in found.items()} == {
        **{"USUBJID": "identifier", "SEX": "categorical", "AGE": "numeric", "RFSTDTC": "date", "GRADE": "ordinal"},
        **{"TRTSDT": "date", "BMI": "numeric", "AEDECOD": "open", "DEATH": "categorical", "DMTM": "open"},
        "LBSEQ": "numeric",
    }
    assert (found["SEX"].labels, found["SEX"].label) == ((("F", "Female"), ("M", "Male")), "Sex")
    assert (found["SEX"].required, found["AGE"].required) == (True, False)
    assert (found["AGE"].range, found["AGE"].integer, found["AGE"].unit) == (("18", "110"), True, "years")
    assert (found["BMI"].decimals, found["BMI"].integer) == (1, False)
    assert (found["GRADE"].categories, found["DEATH"].categories) == (("1", "5"), ("true", "false"))
    assert (found["USUBJID"].label, found["DEATH"].label) == ("Unique Subject Identifier", "Died?")


def test_odm_items_without_groups_and_with_names_that_repeat():
    text = '<ODM><MetaDataVersion><ItemDef OID="a" Name="x" DataType="integer"/></MetaDataVersion></ODM>'
    read = read_dictionary(text.encode(), "d.xml")
    assert (read.format, read["x"].kind) == ("CDISC ODM", "numeric")
    items = '<ItemDef OID="a" Name="Other" DataType="text"/><ItemDef OID="b" Name="Other" DataType="float"/>'
    group = '<ItemGroupDef OID="g"><ItemRef ItemOID="a"/><ItemRef ItemOID="b"/></ItemGroupDef>'
    assert list(columns(f"<ODM><MetaDataVersion>{group}{items}</MetaDataVersion></ODM>")) == ["a", "b"]
    check = '<RangeCheck Comparator="IN"><CheckValue>A</CheckValue><CheckValue>B</CheckValue></RangeCheck>'
    item = f'<ItemDef OID="a" Name="x" DataType="text">{check}</ItemDef>'
    assert columns(f"<ODM><MetaDataVersion>{item}</MetaDataVersion></ODM>")["x"].categories == ("A", "B")


LIFECYCLE = """<DDIInstance xmlns="ddi:instance:3_2" xmlns:r="ddi:reusable:3_2" xmlns:l="ddi:logicalproduct:3_2">
<l:CategoryScheme><l:Category isMissing="false"><r:URN>urn:ddi:org:c1:1</r:URN><r:ID>c1</r:ID>
 <r:Label><r:Content xml:lang="de">Mann</r:Content><r:Content xml:lang="en">Male</r:Content></r:Label></l:Category>
<l:Category><r:ID>c2</r:ID><r:Label><r:Content>Female</r:Content></r:Label></l:Category>
<l:Category><r:ID>c9</r:ID><r:Label><r:Content>Refused</r:Content></r:Label></l:Category></l:CategoryScheme>
<l:CodeListScheme><l:CodeList><r:URN>urn:ddi:org:sex:1</r:URN><r:ID>sex</r:ID>
 <l:Code><r:CategoryReference><r:URN>urn:ddi:org:c1:1</r:URN></r:CategoryReference><r:Value>1</r:Value>
  <l:Code><r:CategoryReference><r:ID>c2</r:ID></r:CategoryReference><r:Value>2</r:Value></l:Code></l:Code></l:CodeList>
 <l:CodeList><r:ID>no</r:ID><l:Code><r:CategoryReference><r:ID>c9</r:ID></r:CategoryReference><r:Value>-9</r:Value>
 </l:Code></l:CodeList></l:CodeListScheme>
<r:ManagedRepresentationScheme><r:ManagedMissingValuesRepresentation><r:ID>mv</r:ID><r:MissingCodeRepresentation>
 <r:CodeListReference><r:ID>no</r:ID></r:CodeListReference></r:MissingCodeRepresentation>
</r:ManagedMissingValuesRepresentation><r:ManagedNumericRepresentation decimalPositions="2"><r:ID>num</r:ID>
 <r:NumericTypeCode>Decimal</r:NumericTypeCode></r:ManagedNumericRepresentation></r:ManagedRepresentationScheme>
<l:RepresentedVariableScheme><l:RepresentedVariable><r:ID>rv</r:ID><r:Label><r:Content>Gender</r:Content></r:Label>
 <r:CodeRepresentation><r:CodeListReference><r:URN>urn:ddi:org:sex:1</r:URN></r:CodeListReference></r:CodeRepresentation>
</l:RepresentedVariable></l:RepresentedVariableScheme>
<l:VariableScheme>
<l:Variable><r:ID>v1</r:ID><l:VariableName><r:String>SEX</r:String></l:VariableName>
 <r:Label><r:Content>Sex</r:Content></r:Label><l:VariableRepresentation>
 <r:MissingValuesReference><r:ID>mv</r:ID></r:MissingValuesReference><r:CodeRepresentation>
 <r:CodeListReference><r:ID>sex</r:ID></r:CodeListReference></r:CodeRepresentation></l:VariableRepresentation></l:Variable>
<l:Variable><r:ID>v2</r:ID><l:VariableName><r:String>AGE</r:String></l:VariableName><l:VariableRepresentation
 missingValue="998 999"><r:NumericRepresentation><r:NumberRange><r:Low isInclusive="true">0</r:Low><r:High>120</r:High>
 </r:NumberRange><r:NumericTypeCode>Integer</r:NumericTypeCode></r:NumericRepresentation></l:VariableRepresentation>
</l:Variable>
<l:Variable><l:VariableName><r:String>WEIGHT</r:String></l:VariableName><l:VariableRepresentation>
 <r:NumericRepresentationReference><r:ID>num</r:ID></r:NumericRepresentationReference></l:VariableRepresentation>
</l:Variable>
<l:Variable><l:VariableName><r:String>BORN</r:String></l:VariableName><l:VariableRepresentation>
 <r:DateTimeRepresentation><r:DateTypeCode>Date</r:DateTypeCode></r:DateTimeRepresentation></l:VariableRepresentation>
</l:Variable>
<l:Variable><l:VariableName><r:String>NOTE</r:String></l:VariableName><l:VariableRepresentation>
 <r:TextRepresentation maxLength="20"/></l:VariableRepresentation></l:Variable>
<l:Variable><l:VariableName><r:String>SEX2</r:String></l:VariableName>
 <r:RepresentedVariableReference><r:ID>rv</r:ID></r:RepresentedVariableReference></l:Variable>
<l:Variable><r:ID>v7</r:ID><l:VariableRepresentation><r:TextRepresentation/></l:VariableRepresentation></l:Variable>
</l:VariableScheme></DDIInstance>"""


def test_ddi_lifecycle():
    read = read_dictionary(LIFECYCLE.encode(), "d.xml")
    found = {column.name: column for column in read.columns}
    assert read.format == "DDI Lifecycle"
    assert read.notes == ("a variable: it has no name and was not read",)
    assert {name: column.kind for name, column in found.items()} == {
        **{"SEX": "categorical", "AGE": "numeric", "WEIGHT": "numeric", "BORN": "date", "NOTE": "open"},
        "SEX2": "categorical",
    }
    assert (found["SEX"].categories, found["SEX"].missing, found["SEX"].label) == (("1", "2"), ("-9",), "Sex")
    assert dict(found["SEX"].labels) == {"1": "Male", "2": "Female", "-9": "Refused"}
    assert (found["AGE"].range, found["AGE"].integer, found["AGE"].missing) == (("0", "120"), True, ("998", "999"))
    assert (found["WEIGHT"].decimals, found["WEIGHT"].integer) == (2, False)
    assert (found["SEX2"].categories, found["SEX2"].label) == (("1", "2"), "Gender")


def test_ddi_lifecycle_3_1():
    text = """<DDIInstance xmlns:r="r" xmlns:l="l"><l:CategoryScheme id="cs">
 <l:Category id="c0" missing="false"><r:Label>No</r:Label></l:Category><l:Category id="c1"><r:Label>Yes</r:Label>
 </l:Category><l:Category id="c8" missing="true"><r:Label>Unknown</r:Label></l:Category></l:CategoryScheme>
 <l:CodeScheme id="yn"><l:Code><l:CategoryReference><r:ID>c0</r:ID></l:CategoryReference><l:Value>0</l:Value></l:Code>
 <l:Code><l:CategoryReference><r:ID>c1</r:ID></l:CategoryReference><l:Value>1</l:Value></l:Code>
 <l:Code><l:CategoryReference><r:ID>c8</r:ID></l:CategoryReference><l:Value>8</l:Value></l:Code></l:CodeScheme>
 <l:VariableScheme><l:Variable id="a"><l:VariableName>smokes</l:VariableName><r:Label>Smokes</r:Label>
 <l:Representation><l:CodeRepresentation classificationLevel="Nominal" missingValue="8 9"><r:CodeSchemeReference>
 <r:ID>yn</r:ID></r:CodeSchemeReference></l:CodeRepresentation></l:Representation></l:Variable>
 <l:Variable id="b"><l:VariableName>income</l:VariableName><l:Representation><l:NumericRepresentation type="Double"
  decimalPositions="2" missingValue="-1"/></l:Representation></l:Variable>
 <l:Variable id="c"><l:VariableName>seen</l:VariableName><l:Representation><l:DateTimeRepresentation type="DateTime"/>
 </l:Representation></l:Variable></l:VariableScheme></DDIInstance>"""
    found = columns(text)
    assert (found["smokes"].categories, found["smokes"].missing) == (("0", "1"), ("8", "9"))
    assert (found["smokes"].labels, found["smokes"].label) == ((("0", "No"), ("1", "Yes"), ("8", "Unknown")), "Smokes")
    assert (found["income"].kind, found["income"].decimals, found["income"].missing) == ("numeric", 2, ("-1",))
    assert found["seen"].kind == "date"


@pytest.mark.parametrize("nested", ["Label", "Category", "Code", "CodeList", "Variable"])
def test_elements_inside_each_other_are_read_once(nested):
    item = f"<{nested}><ID>i</ID><VariableName>v</VariableName><Value>1</Value><Label>text"
    text = item * 20_000 + f"</Label></{nested}>" * 20_000
    first = "<VariableName>first</VariableName><Representation><NumericRepresentation/></Representation>"
    began = time.process_time()
    with contextlib.suppress(SchemaError):
        columns(f"<DDIInstance><Variable>{first}</Variable>{text}</DDIInstance>")
    assert time.process_time() - began < 10


def test_many_variables_that_share_a_long_list_are_refused():
    codes = "".join(f"<Code><Value>{i}</Value></Code>" for i in range(2_000))
    shared = "<CodeRepresentation><CodeListReference><ID>l</ID></CodeListReference></CodeRepresentation>"
    inside = f"<Representation>{shared}</Representation>"
    many = "".join(f"<Variable><VariableName>v{i}</VariableName>{inside}</Variable>" for i in range(900))
    with pytest.raises(SchemaError, match="more than 1,000,000 codes"):
        columns(f"<I><CodeList><ID>l</ID>{codes}</CodeList><VariableScheme>{many}</VariableScheme></I>")


def test_many_items_that_share_a_long_list_are_read_once():
    codes = "".join(f'<CodeListItem CodedValue="{i}"/>' for i in range(20_000))
    items = "".join(
        f'<ItemDef OID="i{i}" Name="i{i}" DataType="text"><CodeListRef CodeListOID="l"/></ItemDef>'
        for i in range(9_000)
    )
    began = time.process_time()
    found = columns(f'<ODM><MetaDataVersion>{items}<CodeList OID="l">{codes}</CodeList></MetaDataVersion></ODM>')
    assert len(found["i8999"].categories) == 20_000
    assert time.process_time() - began < 5
