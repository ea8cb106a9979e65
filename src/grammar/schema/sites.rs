//! Where each keyword stands and what became of it, until the report is written.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::coverage::{Coverage, CoverageEntry, Treatment};
use super::document::{Document, NodeId};
use super::shape::SiteId;

/// Keywords met so far.
#[derive(Default)]
pub struct Sites<'a> {
    all: Vec<Site<'a>>,
    known: FxHashMap<(NodeId, Cow<'a, str>), SiteId>,
}

struct Site<'a> {
    node: NodeId,
    keyword: Cow<'a, str>,
    treatment: Treatment,
    note: Option<Cow<'static, str>>,
}

impl<'a> Sites<'a> {
    /// Notes a keyword as enforced, for now.
    pub fn enforced(&mut self, node: NodeId, keyword: impl Into<Cow<'a, str>>) -> SiteId {
        self.note(node, keyword.into(), Treatment::Enforced, None)
    }

    /// Notes an annotation.
    pub fn annotation(
        &mut self,
        node: NodeId,
        keyword: impl Into<Cow<'a, str>>,
        note: impl Into<Cow<'static, str>>,
    ) {
        self.note(
            node,
            keyword.into(),
            Treatment::Annotation,
            Some(note.into()),
        );
    }

    /// Notes a bound that the schema does not set.
    pub fn bounded(&mut self, node: NodeId, keyword: &'static str, note: String) {
        self.note(
            node,
            Cow::Borrowed(keyword),
            Treatment::Bounded,
            Some(note.into()),
        );
    }

    fn note(
        &mut self,
        node: NodeId,
        keyword: Cow<'a, str>,
        treatment: Treatment,
        note: Option<Cow<'static, str>>,
    ) -> SiteId {
        let fresh = SiteId(self.all.len() as u32);
        let id = *self.known.entry((node, keyword.clone())).or_insert(fresh);
        if id == fresh {
            self.all.push(Site {
                node,
                keyword,
                treatment,
                note,
            });
        }
        id
    }

    /// The keyword is not, or not wholly, in the grammar.
    pub fn check(&mut self, site: SiteId, why: impl Into<Cow<'static, str>>) {
        let site = &mut self.all[site.0 as usize];
        if site.treatment != Treatment::Checked {
            site.treatment = Treatment::Checked;
            site.note = Some(why.into());
        }
    }

    /// The same for several. If none is known, `keyword` at `node` stands for them: nothing is
    /// weakened in silence.
    pub fn check_all(
        &mut self,
        sites: &[SiteId],
        (node, keyword): (NodeId, &'static str),
        why: &'static str,
    ) {
        if sites.is_empty() {
            let site = self.enforced(node, keyword);
            self.check(site, why);
        }
        for &site in sites {
            self.check(site, why);
        }
    }

    /// The report.
    pub fn coverage(&self, document: &Document<'_>) -> Coverage {
        Coverage::new(
            self.all
                .iter()
                .map(|site| CoverageEntry {
                    keyword: site.keyword.clone().into_owned(),
                    pointer: document.pointer(site.node),
                    treatment: site.treatment,
                    note: site.note.clone().map(Cow::into_owned),
                })
                .collect(),
        )
    }
}
