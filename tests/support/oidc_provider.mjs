// An OpenID Connect provider (the npm package oidc-provider) on loopback. Its argument is JSON:
// {port, audience, accessTokenSeconds}. Each line of standard input is a command, answered by a line:
// rotate (sign with new keys and forget the old ones), keys (the private keys, as a JWK Set).
import { generateKeyPairSync, randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import Provider from "oidc-provider";

const { port, audience, accessTokenSeconds } = JSON.parse(process.argv[2]);
const tell = (value) => console.log(JSON.stringify(value));
const server = createServer();
let keys, handle;

const key = (type, options, alg) => ({
    ...generateKeyPairSync(type, options).privateKey.export({ format: "jwk" }), kid: randomUUID(), alg, use: "sig",
});

function start() {
    keys = [key("rsa", { modulusLength: 2048 }, "RS256"), key("ec", { namedCurve: "P-256" }, "ES256"),
        key("ed25519", {}, "EdDSA")];
    const grants = ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"];
    const provider = new Provider(`http://127.0.0.1:${server.address().port}`, {
        jwks: { keys },
        cookies: { keys: ["of the tests"] },
        clients: [
            { client_id: "graphdb-cli", application_type: "native", token_endpoint_auth_method: "none",
                grant_types: [...grants, "authorization_code"], redirect_uris: ["http://127.0.0.1/"], response_types: ["code"] },
            { client_id: "robot", client_secret: "of-the-robot", grant_types: ["client_credentials"],
                redirect_uris: [], response_types: [] },
        ],
        enabledJWA: { idTokenSigningAlgValues: ["RS256", "ES256", "EdDSA"] },
        scopes: ["openid", "offline_access", "RS256", "ES256", "EdDSA", "elsewhere", "reader"],
        features: {
            deviceFlow: { enabled: true },
            clientCredentials: { enabled: true },
            resourceIndicators: {
                enabled: true,
                defaultResource: () => "urn:graphdb",
                useGrantedResource: () => true,
                getResourceServerInfo: (context) => {
                    // A scope of a request says how its token is to be.
                    const wanted = String(context.oidc.params?.scope ?? "").split(" ");
                    return {
                        audience: wanted.includes("elsewhere") ? "elsewhere" : audience,
                        scope: "RS256 ES256 EdDSA elsewhere reader",
                        accessTokenTTL: accessTokenSeconds,
                        accessTokenFormat: "jwt",
                        jwt: { sign: { alg: ["ES256", "EdDSA"].find((one) => wanted.includes(one)) ?? "RS256" } },
                    };
                },
            },
        },
        ttl: { AccessToken: accessTokenSeconds, ClientCredentials: accessTokenSeconds },
        rotateRefreshToken: true,
        issueRefreshToken: (_, client) => client.grantTypeAllowed("refresh_token"),
        extraTokenClaims: (_, token) => ({
            realm_access: { roles: token.scope?.includes("reader") ? ["graph-readers"] : ["graph-writers", "admin"] },
            "https://claims.example/sids": ["S-1-5-21-1-2-3-1001"],
        }),
        findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    });
    handle = provider.callback();
}

server.on("request", (request, answer) => handle(request, answer));
server.listen(port, "127.0.0.1", () => {
    start();
    tell({ issuer: `http://127.0.0.1:${server.address().port}` });
});
createInterface({ input: process.stdin }).on("line", (command) => {
    if (command === "rotate") start();
    tell({ keys });
}).on("close", () => process.exit());
