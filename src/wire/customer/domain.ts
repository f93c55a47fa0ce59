// `/domain/`: main domains with their sub-domains, and the deployment sites that serve them.

import { Type, type Static } from "typebox";
import { body, BooleanLike, DomainText, Id, open, shape, TagsText } from "./shape.ts";
import { closed } from "../validate.ts";

const SubDomainRecord = open({
  name: Type.String(),
  share_views_and_views_dir_with_main_domain: Type.Boolean(),
});

export const Domain = open(
  {
    id: Id,
    name: Type.String(),
    sub_domains: Type.Array(SubDomainRecord),
    deployment_sites: Type.Array(open({ id: Id })),
  },
  {
    title: "Domain",
    examples: [
      {
        id: 12,
        name: "www.example.com",
        sub_domains: [
          { name: "img.www.example.com", share_views_and_views_dir_with_main_domain: true },
        ],
        deployment_sites: [{ id: 7 }],
      },
    ],
  },
);
export type Domain = Static<typeof Domain>;
export const domainShape = shape(Domain);

/** Both names of the id are accepted; with both, they must agree. Tags and an id exclude each other. */
export const domainCreate = body(
  {
    name: DomainText,
    link_to_deployment_sites_with_tags: Type.Optional(TagsText),
    deployment_site_id: Type.Optional(Id),
    deployment_id: Type.Optional(Id),
  },
  ["id", "sub_domains", "deployment_sites"],
  {
    description:
      "Linked by tags (a standing rule: to all deployment sites that have all of the tags, now and later), by id (under either name), or not at all. Tags and an id exclude each other.",
    examples: [
      { name: "www.example.com", link_to_deployment_sites_with_tags: "production,eu" },
      { name: "www.example.com", deployment_site_id: 7 },
      { name: "www.example.com" },
    ],
  },
);

export const domainUpdate = body(
  {
    sub_domain: Type.Optional(
      closed({
        /** Full host name below the main domain. A known one is updated. */
        name: DomainText,
        share_views_and_views_dir_with_main_domain: Type.Optional(BooleanLike),
      }),
    ),
    deployment_site_id: Type.Optional(Id),
    deployment_id: Type.Optional(Id),
  },
  ["id", "name", "sub_domains", "deployment_sites"],
  {
    examples: [
      {
        sub_domain: {
          name: "img.www.example.com",
          share_views_and_views_dir_with_main_domain: true,
        },
      },
      { deployment_site_id: 7 },
    ],
  },
);
