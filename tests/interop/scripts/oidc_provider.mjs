// A provider of OpenID Connect with one client. Arguments: port, redirect URI, id of the key.
// Anyone may log in by any name with any password. A client without a person gets a JSON Web Token.
import { generateKeyPairSync } from "node:crypto";
import { Provider } from "oidc-provider";

const [port, redirect, kid] = process.argv.slice(2);
const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const key = { ...privateKey.export({ format: "jwk" }), kid, use: "sig", alg: "RS256" };
const groups = (name) => (name === "mallory" ? ["visitors"] : ["developers", "everyone"]);

const provider = new Provider(`http://127.0.0.1:${port}`, {
  jwks: { keys: [key] },
  cookies: { keys: ["a key of a test"] },
  clients: [
    {
      client_id: "memory",
      client_secret: "secret-of-memory",
      redirect_uris: [redirect],
      grant_types: ["authorization_code", "client_credentials"],
      token_endpoint_auth_method: "client_secret_post",
    },
  ],
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["groups"] },
  conformIdTokenClaims: false,
  extraTokenClaims: () => ({ groups: groups("service") }),
  findAccount: (_, name) => ({
    accountId: name,
    claims: () => ({
      sub: name,
      email: `${name}@example.com`,
      email_verified: true,
      groups: groups(name),
    }),
  }),
  features: {
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: () => ({
        scope: "",
        audience: "urn:memory",
        accessTokenFormat: "jwt",
        jwt: { sign: { alg: "RS256", kid } },
      }),
    },
  },
});
provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
