import java.io.OutputStream;
import java.net.HttpURLConnection;
import java.net.InetSocketAddress;
import java.net.Proxy;
import java.net.ProxySelector;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.Arrays;

/** Java's two HTTP clients with a proxy: each posts a body with a length and one in chunks, and gets. */
public final class HTTPClients {
    public static void main(String[] args) throws Exception {
        InetSocketAddress proxy = new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0]));
        String url = args[1];
        byte[] body = new byte[100_000];
        Arrays.fill(body, (byte) 'j');
        for (boolean chunked : new boolean[] {false, true}) {
            HttpURLConnection connection = (HttpURLConnection) URI.create(url + "/url-connection").toURL()
                .openConnection(new Proxy(Proxy.Type.HTTP, proxy));
            connection.setDoOutput(true);
            if (chunked) {
                connection.setChunkedStreamingMode(1000);
            }
            try (OutputStream out = connection.getOutputStream()) {
                out.write(body);
            }
            System.out.println("HttpURLConnection POST " + connection.getResponseCode() + " " + new String(connection.getInputStream().readAllBytes()));
        }
        HttpURLConnection connection = (HttpURLConnection) URI.create(url + "/url-connection").toURL().openConnection(new Proxy(Proxy.Type.HTTP, proxy));
        System.out.println("HttpURLConnection GET " + connection.getResponseCode() + " " + new String(connection.getInputStream().readAllBytes()));
        HttpClient client = HttpClient.newBuilder().proxy(ProxySelector.of(proxy)).build();
        HttpRequest.BodyPublisher[] bodies = {HttpRequest.BodyPublishers.ofByteArray(body),
            HttpRequest.BodyPublishers.fromPublisher(HttpRequest.BodyPublishers.ofByteArray(body))};
        for (HttpRequest.BodyPublisher publisher : bodies) {
            HttpResponse<String> response = client.send(HttpRequest.newBuilder(URI.create(url + "/client")).expectContinue(true).POST(publisher).build(),
                HttpResponse.BodyHandlers.ofString());
            System.out.println("HttpClient POST " + response.statusCode() + " " + response.body());
        }
        HttpResponse<String> response = client.send(HttpRequest.newBuilder(URI.create(url + "/client")).build(), HttpResponse.BodyHandlers.ofString());
        System.out.println("HttpClient GET " + response.statusCode() + " " + response.body());
    }
}
