//! A message in one version: its fields as they follow each other on the wire, each with what it
//! means. Nothing here knows of other versions.

use crate::definition::{self, CommonStruct, Definition, Versions};
use crate::role::{Role, Roles, Site};
use anyhow::{Context, Result, bail, ensure};

/// What names a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) api_key: i16,
    pub(crate) direction: Direction,
    pub(crate) version: i16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Direction {
    Request,
    Response,
}

/// A request or response in one version.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) key: Key,
    pub(crate) name: String,
    /// Whether lengths are compact and structs have tagged fields (KIP-482).
    pub(crate) flexible: bool,
    pub(crate) body: Struct,
}

#[derive(Clone, Debug)]
pub(crate) struct Struct {
    /// In wire order.
    pub(crate) fields: Vec<Field>,
    /// By tag.
    pub(crate) tagged: Vec<(u32, Field)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Field {
    /// Empty for the element of an array.
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) nullable: bool,
    pub(crate) role: Option<Role>,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Scalar(Scalar),
    String,
    Bytes,
    Records,
    Struct(Struct),
    Array(Box<Field>),
}

/// What has a fixed size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Scalar {
    Bool,
    Int8,
    Int16,
    Uint16,
    Int32,
    Int64,
    Float64,
    Uuid,
}

impl Message {
    pub(crate) fn new(definition: &Definition, key: Key, roles: &mut Roles) -> Result<Self> {
        let mut resolver = Resolver {
            message: &definition.name,
            key,
            common: &definition.common_structs,
            roles,
        };
        let body = resolver
            .structure(&definition.fields, &mut Vec::new())
            .with_context(|| format!("{} version {}", definition.name, key.version))?;
        Ok(Self {
            key,
            name: definition.name.clone(),
            flexible: definition.flexible_versions.contains(key.version),
            body,
        })
    }

    /// Whether both look the same on the wire, whatever their fields are called.
    pub(crate) fn same_wire(&self, other: &Self) -> bool {
        self.flexible == other.flexible && self.body.same_wire(&other.body)
    }
}

impl Struct {
    fn same_wire(&self, other: &Self) -> bool {
        let same_tag = |(a, b): (&(u32, Field), &(u32, Field))| a.0 == b.0 && a.1.same_wire(&b.1);
        self.fields.len() == other.fields.len()
            && self.tagged.len() == other.tagged.len()
            && std::iter::zip(&self.fields, &other.fields).all(|(a, b)| a.same_wire(b))
            && std::iter::zip(&self.tagged, &other.tagged).all(same_tag)
    }

    /// Takes the roles away that `keep` does not want.
    pub(crate) fn keep_roles(&mut self, keep: &impl Fn(Role) -> bool) {
        let tagged = self.tagged.iter_mut().map(|(_, field)| field);
        for field in self.fields.iter_mut().chain(tagged) {
            field.keep_roles(keep);
        }
    }
}

impl Field {
    fn same_wire(&self, other: &Self) -> bool {
        let same_kind = match (&self.kind, &other.kind) {
            (Kind::Scalar(a), Kind::Scalar(b)) => a == b,
            (Kind::String, Kind::String)
            | (Kind::Bytes, Kind::Bytes)
            | (Kind::Records, Kind::Records) => true,
            (Kind::Struct(a), Kind::Struct(b)) => a.same_wire(b),
            (Kind::Array(a), Kind::Array(b)) => a.same_wire(b),
            _ => false,
        };
        same_kind && self.nullable == other.nullable
    }

    fn keep_roles(&mut self, keep: &impl Fn(Role) -> bool) {
        self.role = self.role.filter(|role| keep(*role));
        match &mut self.kind {
            Kind::Struct(structure) => structure.keep_roles(keep),
            Kind::Array(element) => element.keep_roles(keep),
            Kind::Scalar(_) | Kind::String | Kind::Bytes | Kind::Records => {}
        }
    }

    /// Whether it or something inside it has a role.
    pub(crate) fn has_role(&self) -> bool {
        self.role.is_some()
            || match &self.kind {
                Kind::Struct(structure) => {
                    let tagged = structure.tagged.iter().map(|(_, field)| field);
                    structure.fields.iter().chain(tagged).any(Self::has_role)
                }
                Kind::Array(element) => element.has_role(),
                Kind::Scalar(_) | Kind::String | Kind::Bytes | Kind::Records => false,
            }
    }
}

/// Picks out of a definition what one version has.
struct Resolver<'a> {
    message: &'a str,
    key: Key,
    common: &'a [CommonStruct],
    roles: &'a mut Roles,
}

impl<'a> Resolver<'a> {
    fn structure(
        &mut self,
        fields: &'a [definition::Field],
        path: &mut Vec<&'a str>,
    ) -> Result<Struct> {
        let version = self.key.version;
        let mut structure = Struct {
            fields: Vec::new(),
            tagged: Vec::new(),
        };
        let here = fields
            .iter()
            .filter(|field| field.versions.contains(version));
        let siblings: Vec<_> = here.clone().collect();
        for field in here {
            path.push(&field.name);
            let resolved = self
                .field(field, &siblings, path)
                .with_context(|| path.join("/"))?;
            path.pop();
            if field.tagged_versions.contains(version) {
                let tag = field.tag.context("a tagged field has no tag")?;
                structure.tagged.push((tag, resolved));
            } else {
                structure.fields.push(resolved);
            }
        }
        structure.tagged.sort_by_key(|(tag, _)| *tag);
        Ok(structure)
    }

    fn field(
        &mut self,
        field: &'a definition::Field,
        siblings: &[&definition::Field],
        path: &mut Vec<&'a str>,
    ) -> Result<Field> {
        ensure!(
            field.flexible_versions.is_none(),
            "only a header's field may stay classic"
        );
        let version = self.key.version;
        let element_type = field.type_name.strip_prefix("[]");
        let type_name = element_type.unwrap_or(&field.type_name);
        let kind = match scalar(type_name) {
            Some(kind) => kind,
            None => {
                let fields = self.fields_of(field, type_name)?;
                Kind::Struct(self.structure(fields, path)?)
            }
        };
        let site = Site {
            message: self.message,
            key: self.key,
            path,
            siblings,
            entity_type: field.entity_type.as_deref(),
            kind: &kind,
            is_array: element_type.is_some(),
        };
        let role = self.roles.role(&site)?;
        let nullable = field.nullable_versions.contains(version);
        let name = field.name.clone();
        if element_type.is_none() {
            return Ok(Field {
                name,
                kind,
                nullable,
                role,
            });
        }
        // What is said of an array of structs is meant of the array, of others of the elements.
        let of_element = !matches!(kind, Kind::Struct(_));
        let element = Field {
            name: String::new(),
            kind,
            nullable: false,
            role: role.filter(|_| of_element),
        };
        Ok(Field {
            name,
            kind: Kind::Array(Box::new(element)),
            nullable,
            role: role.filter(|_| !of_element),
        })
    }

    fn fields_of(
        &self,
        field: &'a definition::Field,
        type_name: &str,
    ) -> Result<&'a [definition::Field]> {
        if let Some(fields) = &field.fields {
            return Ok(fields);
        }
        let Some(common) = self.common.iter().find(|it| it.name == type_name) else {
            bail!("no such type: {type_name}");
        };
        let is_there = |versions: Versions| versions.contains(self.key.version);
        ensure!(
            is_there(common.versions),
            "{type_name} is not in this version"
        );
        Ok(&common.fields)
    }
}

/// A type that is no struct.
fn scalar(type_name: &str) -> Option<Kind> {
    Some(match type_name {
        "bool" => Kind::Scalar(Scalar::Bool),
        "int8" => Kind::Scalar(Scalar::Int8),
        "int16" => Kind::Scalar(Scalar::Int16),
        "uint16" => Kind::Scalar(Scalar::Uint16),
        "int32" => Kind::Scalar(Scalar::Int32),
        "int64" => Kind::Scalar(Scalar::Int64),
        "float64" => Kind::Scalar(Scalar::Float64),
        "uuid" => Kind::Scalar(Scalar::Uuid),
        "string" => Kind::String,
        "bytes" => Kind::Bytes,
        "records" => Kind::Records,
        _ => return None,
    })
}
