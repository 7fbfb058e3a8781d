import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.eclipse.californium.core.CoapClient;
import org.eclipse.californium.core.CoapHandler;
import org.eclipse.californium.core.CoapResource;
import org.eclipse.californium.core.CoapResponse;
import org.eclipse.californium.core.CoapServer;
import org.eclipse.californium.core.coap.CoAP;
import org.eclipse.californium.core.coap.MediaTypeRegistry;
import org.eclipse.californium.core.coap.Request;
import org.eclipse.californium.core.config.CoapConfig;
import org.eclipse.californium.core.network.CoapEndpoint;
import org.eclipse.californium.core.network.Endpoint;
import org.eclipse.californium.core.server.resources.CoapExchange;
import org.eclipse.californium.elements.UDPConnector;
import org.eclipse.californium.elements.UdpMulticastConnector;
import org.eclipse.californium.elements.config.Configuration;
import org.eclipse.californium.elements.config.TcpConfig;
import org.eclipse.californium.elements.config.UdpConfig;
import org.eclipse.californium.elements.tcp.netty.TcpClientConnector;
import org.eclipse.californium.elements.tcp.netty.TcpServerConnector;

/** A CoAP server and client of Californium: serve HOST PORT, ask URI, serve-group HOST PORT GROUP INTERFACE, or ask-group HOST URI. */
public class CaliforniumPeer {
    static Configuration configuration() {
        CoapConfig.register();
        UdpConfig.register();
        TcpConfig.register();
        Configuration c = new Configuration();
        c.set(CoapConfig.MAX_RESOURCE_BODY_SIZE, 1 << 20);
        c.set(CoapConfig.LEISURE, 1, TimeUnit.SECONDS);
        return c;
    }

    static void fill(CoapServer server) {
        server.add(new CoapResource("messages") {
            @Override
            public void handlePOST(CoapExchange exchange) {
                System.out.println("received " + exchange.getRequestPayload().length);
                exchange.respond(CoAP.ResponseCode.CHANGED, exchange.getRequestPayload(), exchange.getRequestOptions().getContentFormat());
            }
        });
        server.add(new CoapResource("state") {
            @Override
            public void handleGET(CoapExchange exchange) {
                exchange.respond("state of /state");
            }
        });
    }

    static void serve(String host, int port, String group, String device) throws Exception {
        Configuration c = configuration();
        CoapServer server = new CoapServer(c);
        UDPConnector udp = new UDPConnector(new InetSocketAddress(host, port), c);
        if (group != null) {
            UdpMulticastConnector.Builder joined = new UdpMulticastConnector.Builder().setConfiguration(c).setMulticastReceiver(true)
                    .setLocalAddress(InetAddress.getByName(group), port)
                    .addMulticastGroup(InetAddress.getByName(group), NetworkInterface.getByName(device));
            udp.addMulticastReceiver(joined.build());
        }
        server.addEndpoint(CoapEndpoint.builder().setConfiguration(c).setConnector(udp).build());
        server.addEndpoint(CoapEndpoint.builder().setConfiguration(c).setConnector(new TcpServerConnector(new InetSocketAddress(host, port), c)).build());
        fill(server);
        server.start();
        System.out.println("ready");
    }

    static void ask(String uri) throws Exception {
        Configuration c = configuration();
        CoapEndpoint.Builder builder = CoapEndpoint.builder().setConfiguration(c);
        if (uri.startsWith("coap+tcp:")) {
            builder.setConnector(new TcpClientConnector(c));
        }
        Endpoint endpoint = builder.build();
        endpoint.start();
        for (int length : new int[] {10, 1024, 5000}) {
            byte[] payload = new byte[length];
            for (int i = 0; i < length; i++) {
                payload[i] = (byte) (i % 251);
            }
            CoapResponse r = new CoapClient(uri + "/messages").setEndpoint(endpoint).post(payload, MediaTypeRegistry.APPLICATION_OCTET_STREAM);
            System.out.println("posted " + length + " " + r.getCode() + " " + Arrays.equals(payload, r.getPayload()) + " " + r.getOptions().getContentFormat());
        }
        CoapResponse state = new CoapClient(uri + "/state").setEndpoint(endpoint).get();
        System.out.println("state " + state.getCode() + " " + state.getResponseText());
        System.out.println("missing " + new CoapClient(uri + "/missing").setEndpoint(endpoint).get().getCode());
        Thread.sleep(500);
        System.exit(0);
    }

    static void askGroup(String host, String uri) throws Exception {
        Configuration c = configuration();
        Endpoint endpoint = CoapEndpoint.builder().setConfiguration(c).setInetSocketAddress(new InetSocketAddress(host, 0)).build();
        endpoint.start();
        Request request = Request.newGet();
        request.setType(CoAP.Type.NON);
        request.setURI(uri);
        CountDownLatch done = new CountDownLatch(1);
        new CoapClient().setEndpoint(endpoint).advanced(new CoapHandler() {
            @Override
            public void onLoad(CoapResponse r) {
                System.out.println("response " + r.getCode() + " " + r.getResponseText());
                done.countDown();
            }

            @Override
            public void onError() {
            }
        }, request);
        done.await(10, TimeUnit.SECONDS);
        System.exit(0);
    }

    public static void main(String[] a) throws Exception {
        switch (a[0]) {
            case "serve": serve(a[1], Integer.parseInt(a[2]), null, null); break;
            case "serve-group": serve(a[1], Integer.parseInt(a[2]), a[3], a[4]); break;
            case "ask": ask(a[1]); break;
            case "ask-group": askGroup(a[1], a[2]); break;
        }
    }
}
