"""Reading Go declarations."""

from pathlib import Path

from tools.api_types.go_source import GoType, read_package

SOURCE = """/* a licence
type NotMe struct {
*/
package v1

import (
	"time"

	metav1 "example/meta/v1"
	"example/resource"
)

// Thing says something.
// +structType=atomic
type Thing struct {
	metav1.TypeMeta `json:",inline"`
	// Sizes of things.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +listMapKey=port
	// +default="TCP"
	Sizes []Size `json:"sizes,omitempty" patchStrategy:"merge" patchMergeKey:"name" protobuf:"bytes,2,rep,name=sizes"`

	/* gone for good
	Lost string
	*/

	Limit *resource.Quantity `json:"limit" protobuf:"bytes,3,opt,name=limit"` // trailing words
}

// +protobuf.nullable=true
// +protobuf.options.(gogoproto.goproto_stringer)=false

type Extra []string

type Size string // a word

type Empty struct{}

type Odd struct {
	Call func(a int) (b int)
}

func (t Thing) String() string {
	return ""
}
"""


def read(tmp_path: Path) -> dict[str, GoType]:
    (tmp_path / "types.go").write_text(SOURCE)
    (tmp_path / "types_test.go").write_text("type OnlyInTests struct {\n}\n")
    (tmp_path / "zz_generated.go").write_text("type Generated struct {\n}\n")
    return read_package(tmp_path, "example/v1")


def test_declarations_are_found_and_nothing_else(tmp_path: Path) -> None:
    assert sorted(read(tmp_path)) == ["Empty", "Extra", "Odd", "Size", "Thing"]


def test_a_field_has_its_type_tags_and_markers(tmp_path: Path) -> None:
    thing = read(tmp_path)["Thing"]
    inline, sizes, limit = thing.fields
    assert (inline.name, inline.type, inline.tags) == ("TypeMeta", "metav1.TypeMeta", {"json": ",inline"})
    assert (sizes.name, sizes.type, sizes.tags["patchMergeKey"]) == ("Sizes", "[]Size", "name")
    assert sizes.markers == {"listType": ["map"], "listMapKey": ["name", "port"], "default": ['"TCP"']}
    assert (limit.type, limit.markers) == ("*resource.Quantity", {})
    assert thing.markers == {"structType": ["atomic"]}


def test_imports_are_known_by_their_alias_or_last_part(tmp_path: Path) -> None:
    assert read(tmp_path)["Thing"].imports == {
        "time": "time",
        "metav1": "example/meta/v1",
        "resource": "example/resource",
    }


def test_named_types_know_what_they_are(tmp_path: Path) -> None:
    found = read(tmp_path)
    assert (found["Extra"].underlying, found["Extra"].is_nullable_message) == ("[]string", True)
    assert (found["Size"].underlying, found["Size"].is_nullable_message) == ("string", False)
    assert (found["Empty"].underlying, found["Empty"].fields) == ("", ())


def test_a_struct_beyond_the_reader_says_so(tmp_path: Path) -> None:
    assert read(tmp_path)["Odd"].unreadable == "Call func(a int) (b int)"
    assert read(tmp_path)["Thing"].unreadable == ""
