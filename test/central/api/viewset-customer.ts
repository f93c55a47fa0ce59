// A customer with one domain on one deployment, and what he does with its versions.

import { member, type Api } from "./api-harness.ts";

export class ViewsetCustomer {
  readonly #api: Api;
  readonly token: string;
  /** Of his domain. */
  readonly name: string;
  /** Of the deployment. */
  readonly siteId: number;

  private constructor(api: Api, token: string, name: string, siteId: number) {
    this.#api = api;
    this.token = token;
    this.name = name;
    this.siteId = siteId;
  }

  /** Each `no` once; an hour after the one before, for trials are rare. */
  static async enrol(api: Api, no: number): Promise<ViewsetCustomer> {
    api.clock = new Date(api.clock.getTime() + 3_600_000);
    const token = await api.trial(`viewer${no}`);
    const name = `v${no}.example.com`;
    const site = await api.call("POST", "/deployment-site/", { token, body: {} });
    const siteId = Number(member(site.body, "id"));
    await api.call("POST", "/domain/", { token, body: { name, deployment_site_id: siteId } });
    return new ViewsetCustomer(api, token, name, siteId);
  }

  /** A devlove of his domain. */
  document(settings: object): string {
    return JSON.stringify({ domains: { [this.name]: settings } });
  }

  async postDevlove(viewset: string, content: string) {
    const body = { schema: "devlove/1", content };
    return this.#api.call("POST", `/${this.name}/devlove/${viewset}/`, { token: this.token, body });
  }

  async versions(): Promise<readonly Record<string, unknown>[]> {
    const { body } = await this.#api.call("GET", `/active-viewset/${this.name}/`, {
      token: this.token,
    });
    return Array.isArray(body) ? body : [];
  }

  async activate(viewset: string) {
    const version = (await this.versions()).find((one) => one["name"] === viewset);
    const path = `/active-viewset/${this.name}/${member(version, "id")}/`;
    return this.#api.call("PUT", path, { token: this.token, body: version });
  }
}
